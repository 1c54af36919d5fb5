#include <gtest/gtest.h>

#include "bench/cpu/Compile.h"
#include "bench/cpu/Heat.h"
#include "bench/cpu/OneDnn.h"
#include "bench/cpu/Table.h"
#include "bench/quickstart/Text.h"
#include "bench/quickstart/Training.h"
#include "dsl/Library.h"

namespace normc::bench {
namespace {

Problem problemOf(const std::string& text) { return *parseProblem(text, findNorm); }

const RaceOptions kShort = {.sampleSeconds = 20e-6, .seconds = 1e-3, .minRounds = 3, .maxRounds = 3};

Heat heatOf(Entry entry) {
  const std::string shape = "@f32[*x24]";
  const Kernels kernels =
      compile({problemOf("layer_norm:forward" + shape), problemOf("layer_norm:backward" + shape)});
  const Problem problem = problemOf("layer_norm:" + std::string(normc::name(entry)) + shape);
  return runHeat({entry, DType::F32, {1, 10, 24}, 1, "10 rows"}, {problem}, kernels, {}, false, nullptr,
                 kShort);
}

TEST(Heat, RunsOurKernelBesideCopiesOfItsTraffic) {
  for (Entry entry : {Entry::Forward, Entry::Backward}) {
    const Heat heat = heatOf(entry);
    ASSERT_EQ(heat.entrants.size(), 3u);
    const Entrant* ours = heat.find(Runner::Ours, "layer_norm");
    ASSERT_TRUE(ours);
    EXPECT_EQ(ours->traffic.total(), entry == Entry::Forward ? 2 : 3);
    EXPECT_EQ(ours->samples.size(), 3u);
    const Entrant* copy = heat.fasterCopy(ours->traffic);
    ASSERT_TRUE(copy);
    EXPECT_EQ(copy->traffic, ours->traffic);
    EXPECT_NE(ours->implementation.find("layer_norm"), std::string::npos);
  }
}

TEST(Heat, RunsChannelsFirstSegmentBySegment) {
  const std::string shape = "@f32[*x6x*]{layout=channels_first}";
  const Kernels kernels =
      compile({problemOf("batch_norm:forward" + shape), problemOf("batch_norm:backward" + shape)});
  const HeatPlan plan{Entry::Backward, DType::F32, {3, 10, 6, Layout::ChannelsFirst}, 1, "30 rows"};
  const Heat heat =
      runHeat(plan, {problemOf("batch_norm:backward" + shape)}, kernels, {}, false, nullptr, kShort);
  EXPECT_TRUE(heat.find(Runner::Ours, "batch_norm")) << notRun({heat});
  EXPECT_EQ(heat.plan.tensorBytes(), 3 * 10 * 6 * 4);
  EXPECT_EQ(heat.plan.text(), "backward f32, 3 x 6 x 10, channels first, 30 rows, 1 thread");
}

TEST(Heat, HasAColumnForTheBuildBeforeWhereThereIsOne) {
  const std::vector<Problem> problems = {problemOf("layer_norm:forward@f32[*x24]")};
  const Kernels kernels = compile(problems), before = compile(problems);
  const HeatPlan plan{Entry::Forward, DType::F32, {1, 10, 24}, 1, "10 rows"};
  const Heat heat = runHeat(plan, problems, kernels, {.before = &before}, false, nullptr, kShort);
  EXPECT_TRUE(heat.find(Runner::Before, "layer_norm")) << notRun({heat});
  EXPECT_NE(table(heat).find("/ before"), std::string::npos) << table(heat);
  EXPECT_NE(summary({heat}).find("/ before"), std::string::npos) << summary({heat});
  EXPECT_EQ(table(heatOf(Entry::Forward)).find("/ before"), std::string::npos);
}

TEST(Heat, TableAndJsonTellTheSame) {
  const Heat heat = heatOf(Entry::Forward);
  EXPECT_EQ(table(heat).rfind("forward f32, 10 x 24, 10 rows, 1 thread", 0), 0u) << table(heat);
  EXPECT_NE(table(heat).find("\n  layer_norm            2 "), std::string::npos) << table(heat);
  const auto json = toJson({heat}, thisMachine(), {});
  const auto& ours = json.at("heats").at(0).at("entrants").at(0);
  EXPECT_EQ(ours.at("who"), "normc");
  EXPECT_EQ(ours.at("norm"), "layer_norm");
  EXPECT_EQ(ours.at("samples").size(), 3u);
  EXPECT_TRUE(ours.contains("to_copy"));
}

TEST(Heat, SummaryTakesTheMeanOverHeatsAgainstAPeer) {
  Heat small, large;
  small.plan = large.plan = {Entry::Forward, DType::F32, {1, 8, 8}, 1, "in cache"};
  small.entrants = {{Runner::Ours, "layer_norm", {}, {1, 1}, ""},
                    {Runner::OneDnn, "layer_norm", {}, {2, 2}, "jit"}};
  large.entrants = {{Runner::Ours, "layer_norm", {}, {1, 1}, ""},
                    {Runner::OneDnn, "layer_norm", {}, {8, 8}, "jit"}};
  EXPECT_NE(summary({small, large}).find("0.25 [0.25, 0.25]   of 2"), std::string::npos);
}

TEST(Heat, CliffsCompareWithTheBetterAlignedNeighbour) {
  auto heatOf = [](int64_t features, double seconds) {
    Heat heat;
    heat.plan = {Entry::Forward, DType::F32, {1, 10, features}, 1, "in cache"};
    heat.entrants = {{Runner::Ours, "layer_norm", {}, {seconds}, ""}};
    return heat;
  };
  // 1.5 us for 65 features next to 1 us for 64, and 3 us for 128: slightly worse.
  const std::string all =
      cliffs({heatOf(64, 1e-6), heatOf(65, 1.5e-6), heatOf(128, 3e-6), heatOf(200, 5e-6)});
  EXPECT_NE(all.find("beside it, forward f32, in cache, 1 thread:\n      65  layer_norm 1.48\n     200  "
                     "layer_norm 1.07\n"
                     "   worst  layer_norm 1.48\n"),
            std::string::npos)
      << all;
  EXPECT_EQ(cliffs({heatOf(64, 1e-6)}), "");
  EXPECT_EQ(cliffs({heatOf(65, 1e-6)}), "") << "without a neighbour";
}

TEST(Heat, RemarksOnCodeOfThePeerThatIsNotOptimised) {
  Heat heat;
  heat.plan = {Entry::Forward, DType::BF16, {1, 8, 100}, 1, "8 rows"};
  heat.entrants = {{Runner::OneDnn, "batch_norm", {}, {1}, "nspc_bnorm:any"}};
  EXPECT_NE(table(heat).find("oneDNN has no optimised batch_norm here: it runs nspc_bnorm:any"),
            std::string::npos);
}

TEST(Heat, SaysEachReasonOnce) {
  Heat heat;
  heat.notRun = {"oneDNN has no rms_norm", "oneDNN has no rms_norm"};
  EXPECT_EQ(notRun({heat, heat}), "Not run:\n  oneDNN has no rms_norm\n");
}

TEST(Heat, AMissingOneDnnSaysHowToGetIt) {  // these tests are built without it
  Tensors tensors(DType::F32, {1, 2, 8}, false);
  std::string why;
  EXPECT_FALSE(makeOneDnn(problemOf("layer_norm:forward@f32[*x8]"), tensors, 1, why));
  EXPECT_EQ(why, "was not found when this was built; scripts/setup --peers installs it");
  EXPECT_EQ(oneDnnVersion(), "");
}

TEST(Quickstart, StepsAreRightAndTheLossFalls) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the quick brown fox jumps over the lazy dog; ";
  const auto rows = quickstart::activationsOf(quickstart::tokensOf(text), 48);
  for (const std::string norm : {"power_norm", "layer_norm"}) {
    const Problem forward = problemOf(norm + ":forward@f32[*x48]");
    const Kernels kernels = compile({forward, problemOf(norm + ":backward@f32[*x48]")});
    const quickstart::Training training = quickstart::train(kernels, forward, {rows, 48, 40, 4});
    EXPECT_EQ(training.failure, "");
    EXPECT_GT(training.forward.relative, 0);
    EXPECT_LT(training.forward.allowed, 1);
    EXPECT_LT(training.backward.allowed, 1);
    EXPECT_LT(training.lastLoss, training.firstLoss);
  }
}

}  // namespace
}  // namespace normc::bench
