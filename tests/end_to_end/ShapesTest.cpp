// One kernel for any number of features, over the sizes where loops change shape:
// less than a vector, one more than a power of two, more than a tile, none at all.
#include <gtest/gtest.h>

#include "runtime/normc.hpp"
#include "tests/Sample.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Questions.h"
#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

class AnySize : public testing::TestWithParam<const char*> {};

TEST_P(AnySize, ServesEveryShape) {
  Problem problem = problemOf(GetParam());
  std::vector<gate::Trial> trials{{.extents = {1, 4096, 40}, .step = 2}};
  for (int64_t features : {1, 3, 7, 8, 15, 127, 128, 768, 1000, 1024, 4097})
    for (int64_t rows : {0, 1, 3, 33, 129})
      trials.push_back({.extents = {1, rows, features}, .step = 2, .seed = uint64_t(rows + features)});
  const std::vector<gate::Question> questions = questionsOf(problem, trials);
  for (const char* isaName : {"x86-64-v3", "host:zen4", "host:cove"}) {
    auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
    for (codegen::Strategy strategy : codegen::cpu::strategies(problem)) {
      auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, strategy), isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      for (const gate::Question& question : questions) {
        gate::Verdict verdict = kernel->judge(problem, question);
        EXPECT_TRUE(verdict.ok) << isaName << " " << codegen::name(strategy).str() << " " << verdict.text;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Norms, AnySize,
                         testing::Values("layer_norm:forward@f32[*x*]", "layer_norm:backward@f32[*x*]",
                                         "rms_norm:forward@bf16[*x*]", "rms_norm:backward@bf16[*x*]",
                                         "power_norm:forward@f32[*x*]", "power_norm:backward@f32[*x*]",
                                         "batch_norm:forward@f32[*x*]", "batch_norm:backward@f32[*x*]",
                                         "power_norm_v:backward@f16[*x*]",
                                         "power_norm_released:forward@f32[*x*]{heads=1,mask}",
                                         "power_norm_released:backward@f32[*x*]{heads=1,mask}"));

/// Rows of 1, 2, 4 or 8 vectors: squares are of distances from the mean itself.
class ShortRows : public testing::TestWithParam<const char*> {};

TEST_P(ShortRows, PassTheGateAndAreExactWhereAllIsOneValue) {
  const Problem problem = problemOf(GetParam());
  for (const char* isaName : {"x86-64-v3", "host:zen4", "host:cove"}) {
    const auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
    auto kernel =
        compiled(problem, codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Resident), isa);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
      const gate::Verdict verdict = kernel->judge(problem, question);
      EXPECT_TRUE(verdict.ok) << isaName << " " << verdict.text;
      if (question.trial.data != HardInput::ConstantRows) continue;
      EXPECT_EQ(verdict.relativeError.at("saved.mean"), 0) << isaName;
      EXPECT_LT(verdict.relativeError.at("saved.rstd"), 1e-7) << isaName;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Norms, ShortRows,
                         testing::Values("layer_norm:forward@f32[*x8]", "layer_norm:forward@f32[*x16]",
                                         "layer_norm:forward@f32[*x32]", "layer_norm:forward@f32[*x64]",
                                         "layer_norm:forward@f32[*x128]", "layer_norm:forward@bf16[*x64]",
                                         "layer_norm:forward@f16[*x128]", "layer_norm:forward@f64[*x32]",
                                         "group_norm:forward@f32[*x256]{groups=8}"));

/// Returns the questions of calls with and without gaps between rows.
std::vector<gate::Question> questionsOfCalls(const Problem& problem, std::initializer_list<Extents> calls) {
  std::vector<gate::Trial> trials;
  for (const Extents& extents : calls)
    for (int64_t padding : {0, 16}) {
      trials.push_back({.extents = extents, .step = 2, .seed = uint64_t(extents.rows)});
      trials.back().placement.rowPadding = padding;
    }
  return questionsOf(problem, trials);
}

void expectRight(const Problem& problem, Compiled& kernel, const std::vector<gate::Question>& questions) {
  for (const gate::Question& question : questions) {
    const gate::Verdict verdict = kernel.judge(problem, question);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

/// Rows that begin inside cache lines: at each place in a line, those of x and y alike or not, with gaps and
/// in place.
class RowsInsideLines : public testing::TestWithParam<const char*> {};

TEST_P(RowsInsideLines, AreRightWhereverTheyBegin) {
  const Problem problem = problemOf(GetParam());
  using gate::Placement;
  std::vector<gate::Trial> trials;
  for (const Placement& placement :
       {Placement{}, Placement{.misalign = 1}, Placement{.misalign = 7, .inPlace = true},
        Placement{.skew = 3}, Placement{.rowPadding = 1, .misalign = 2},
        Placement{.rowPadding = 15 * *problem.features}, Placement{.reversed = true}})
    for (int64_t rows : {1, 18})
      trials.push_back({.extents = {problem.segmented ? 2 : 1, rows, *problem.features},
                        .step = 2,
                        .seed = uint64_t(rows + placement.misalign),
                        .placement = placement});
  const std::vector<gate::Question> questions = questionsOf(problem, trials);
  for (const char* isaName : {"x86-64-v3", "host:zen4", "host:cove"}) {
    const auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
    for (codegen::Strategy strategy : codegen::cpu::strategies(problem)) {
      auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, strategy), isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      SCOPED_TRACE(std::string(isaName) + " " + codegen::name(strategy).str());
      expectRight(problem, *kernel, questions);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Norms, RowsInsideLines,
    testing::Values("layer_norm:forward@f32[*x250]", "layer_norm:backward@f32[*x129]",
                    "rms_norm:forward@bf16[*x257]", "rms_norm_residual:forward@f32[*x131]",
                    "rms_norm_residual:backward@f32[*x131]", "batch_norm:forward@f32[*x1030]{mask}",
                    "batch_norm:backward@f32[*x250]", "power_norm:forward@f32[*x1025]",
                    "power_norm:backward@f32[*x1025]", "power_norm:backward@f16[*x260]{mask}",
                    "gated_rms_norm:forward@f32[*x250]{groups=2}", "layer_norm:forward@f64[*x67]",
                    "group_norm_segment:forward@f32[*x*x250]{groups=1}",
                    "group_norm_segment:backward@f32[*x*x250]{groups=2}"));

/// Streamed with layout channels_first, in tasks that begin within runs, with them, or take many.
class Runs : public testing::TestWithParam<const char*> {};

TEST_P(Runs, ServeEveryShape) {
  const Problem problem = problemOf(GetParam());
  const std::vector<gate::Question> questions = questionsOfCalls(problem, {Extents{1, 1000, 6},
                                                                           {3, 200, 12},
                                                                           {7, 49, 5},
                                                                           {9, 64, 1030},
                                                                           {17, 100, 3},
                                                                           {130, 3, 4},
                                                                           {40, 1, 3},
                                                                           {2, 96, 8},
                                                                           {0, 9, 5},
                                                                           {4, 0, 5}});
  for (const char* isaName : {"x86-64-v3", "host:zen4", "host:cove"}) {
    const auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
    for (int64_t together : {1, 4}) {
      auto schedule = codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Streamed);
      schedule.grain = 64, schedule.rows = together, schedule.stream = 5 - together;
      auto kernel = compiled(problem, schedule, isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      SCOPED_TRACE(schedule.text());
      expectRight(problem, *kernel, questions);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Norms, Runs,
                         testing::Values("batch_norm:forward@f32[*x*x*]{layout=channels_first}",
                                         "batch_norm:backward@f32[*x*x*]{layout=channels_first}",
                                         "batch_norm:forward@bf16[*x*x*]{layout=channels_first,mask}",
                                         "power_norm:forward@f32[*x*x*]{layout=channels_first}",
                                         "power_norm:backward@f32[*x*x*]{layout=channels_first,mask}",
                                         "batch_norm:infer@f16[*x*x*]{layout=channels_first}",
                                         "mabn:forward@f64[*x*x*]{layout=channels_first}"));

/// Rows with layout channels_first: pieces that are shorter than a vector, begin within cache lines, or are
/// several; tasks that begin within segments, or take many. Each turn pairs the processors with other numbers
/// of pieces side by side.
struct Crossing {
  const char* problem;
  size_t turn;
};
class AcrossChannels : public testing::TestWithParam<Crossing> {};

TEST_P(AcrossChannels, ServesEveryShape) {
  const Problem problem = problemOf(GetParam().problem);
  const std::vector<gate::Question> questions = questionsOfCalls(problem, {Extents{1, 1000, 8},
                                                                           {2, 2300, 12},
                                                                           {3, 200, 516},
                                                                           {7, 49, 20},
                                                                           {2, 64, 4104},
                                                                           {17, 100, 4},
                                                                           {130, 3, 256},
                                                                           {40, 1, 28},
                                                                           {2, 96, 132},
                                                                           {0, 9, 8},
                                                                           {4, 0, 8}});
  constexpr const char* kSets[] = {"x86-64-v3", "host:zen4", "host:cove"};
  constexpr int64_t kTogether[] = {1, 2, 8};
  for (size_t i = 0; i < std::size(kSets); ++i) {
    const auto isa = llvm::cantFail(codegen::cpu::findIsa(kSets[i]));
    const int64_t together = kTogether[(i + GetParam().turn) % std::size(kTogether)];
    auto schedule = codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Resident);
    schedule.grain = 100 / together, schedule.rows = together, schedule.stream = 8 / together;
    schedule.unroll = together == 2 ? 2 : 1;
    auto kernel = compiled(problem, schedule, isa);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    SCOPED_TRACE(schedule.text());
    expectRight(problem, *kernel, questions);
  }
}

/// The sample has one turn of each problem, and all turns.
Divided<Crossing> crossings() {
  constexpr const char* kProblems[] = {"layer_norm:forward@f32[*x*x*]{layout=channels_first}",
                                       "layer_norm:backward@f32[*x*x*]{layout=channels_first}",
                                       "layer_norm:forward@bf16[*x*x*]{layout=channels_first,mask}",
                                       "layer_norm:backward@f16[*x*x*]{layout=channels_first,mask}",
                                       "rms_norm:backward@f64[*x*x*]{layout=channels_first}",
                                       "group_norm:forward@f32[*x*x*]{groups=4,layout=channels_first}",
                                       "group_norm:backward@bf16[*x*x*]{groups=4,layout=channels_first}",
                                       "group_scaling:infer@f16[*x*x*]{groups=4,layout=channels_first}"};
  Divided<Crossing> all;
  for (size_t i = 0; i < std::size(kProblems); ++i)
    for (size_t turn = 0; turn < 3; ++turn)
      (turn == i % 3 ? all.sample : all.rest).push_back({kProblems[i], turn});
  return all;
}
NORMC_INSTANTIATE_SAMPLE(Norms, AcrossChannels, crossings(), [](const auto& info) {
  return testName(info.param.problem) + "_" + std::to_string(info.param.turn);
});

class TallTensor : public testing::TestWithParam<const char*> {};

TEST_P(TallTensor, KeepsItsDigitsInTheKernelThatThePackageChooses) {
  const std::string shape = "[150001x6]", text = GetParam();
  const Problem problem = problemOf(text + "[*x6]");
  const std::string bytes = llvm::cantFail(
      codegen::buildPackage(codegen::defaultJobs(problem, llvm::cantFail(codegen::findTarget("host")))));
  host::Context context;
  host::Package package(context, bytes.data(), bytes.size());
  const host::Plan plan(package, text + shape, normc_request{});
  const gate::Verdict verdict = gate::judge(plan.get(), problem, {.extents = {1, 150001, 6}, .step = 2});
  EXPECT_TRUE(verdict.ok) << verdict.text;
}
INSTANTIATE_TEST_SUITE_P(Columns, TallTensor,
                         testing::Values("batch_norm:forward@f32", "batch_norm:backward@f32",
                                         "power_norm:backward@f32"));

TEST(LongSums, OfManyShortSegmentsKeepTheirDigits) {
  for (const char* text : {"batch_norm:forward@f32[*x6x*]{layout=channels_first}",
                           "batch_norm:backward@f32[*x6x*]{layout=channels_first}"}) {
    const Problem problem = problemOf(text);
    std::vector<gate::Trial> trials;
    for (const HardInput data : {HardInput::Normal, HardInput::OutlierRow, HardInput::Mean1000})
      trials.push_back({.extents = {50001, 3, 6}, .data = data, .step = 2});
    const std::vector<gate::Question> questions = questionsOf(problem, trials);
    for (const codegen::Strategy strategy : {codegen::Strategy::Streamed, codegen::Strategy::Resident}) {
      auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, hostIsa(), strategy), hostIsa());
      ASSERT_TRUE(kernel->plan) << kernel->error;
      for (const gate::Question& question : questions) {
        const gate::Verdict verdict = kernel->judge(problem, question);
        EXPECT_TRUE(verdict.ok) << verdict.text;
      }
    }
  }
}

using LongRun = std::tuple<std::string, std::pair<int64_t, int64_t>>;  ///< norm and entry; segments, rows

class LongRuns : public testing::TestWithParam<LongRun> {};

TEST_P(LongRuns, KeepTheirDigitsInTheKernelThatThePackageChooses) {
  const auto& [name, sizes] = GetParam();
  const auto& [segments, rows] = sizes;
  const std::string layout = "{layout=channels_first}";
  const Problem problem = problemOf(name + "@f32[*x3x*]" + layout);
  std::vector<gate::Trial> trials;
  for (const HardInput data : {HardInput::OutlierRow, HardInput::Mean1000})
    trials.push_back({.extents = {segments, rows, 3}, .data = data, .step = 2});
  const std::vector<gate::Question> questions = questionsOf(problem, trials);
  for (const char* target : {"host", "x86-64-v3"}) {
    const std::string bytes = llvm::cantFail(
        codegen::buildPackage(codegen::defaultJobs(problem, llvm::cantFail(codegen::findTarget(target)))));
    host::Context context;
    host::Package package(context, bytes.data(), bytes.size());
    const host::Plan plan(
        package, name + "@f32[" + std::to_string(segments) + "x3x" + std::to_string(rows) + "]" + layout,
        normc_request{});
    EXPECT_NE(plan.describe().find("schedule: resident,"), std::string::npos) << plan.describe();
    for (const gate::Question& question : questions) {
      const gate::Verdict verdict = gate::judge(plan.get(), problem, question);
      EXPECT_TRUE(verdict.ok) << target << " " << verdict.text;
    }
  }
}
/// The sample has each entry, and each length.
const std::pair<int64_t, int64_t> kLong{1, 1500001}, kSeveral{20, 40003};
const Divided<LongRun> kLongRuns{{{"batch_norm:forward", kLong}, {"batch_norm:backward", kSeveral}},
                                 {{"batch_norm:forward", kSeveral}, {"batch_norm:backward", kLong}}};
std::string longRunName(const testing::TestParamInfo<LongRun>& info) {
  const auto& [name, sizes] = info.param;
  return testName(name) + "_" + std::to_string(sizes.first) + "x" + std::to_string(sizes.second);
}
NORMC_INSTANTIATE_SAMPLE(Columns, LongRuns, kLongRuns, longRunName);

TEST(LongSums, DownTheColumnsOfSplitRowsKeepTheirDigits) {
  for (const char* text : {"layer_norm:backward@f32[*x1537]", "rms_norm:backward@f32[*x2048]",
                           "layer_norm:backward@bf16[*x1536]"}) {
    const Problem problem = problemOf(text);
    for (const char* isaName : {"x86-64-v3", "host"}) {
      const auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
      auto kernel =
          compiled(problem, codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Split), isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      for (const HardInput data : {HardInput::Normal, HardInput::OutlierRow, HardInput::Mean1000}) {
        const gate::Verdict verdict = gate::judge(
            kernel->plan, problem, {.extents = {1, 85, *problem.features}, .data = data, .step = 2});
        EXPECT_TRUE(verdict.ok) << text << " " << isaName << " " << verdict.text;
      }
    }
  }
}

TEST(LongSums, OfWholeChannelsInShortRunsBeginNearTheirMean) {
  const Problem problem = problemOf("batch_norm:forward@f32[*x256x*]{layout=channels_first}");
  for (const char* isaName : {"x86-64-v3", "host:zen4", "host:cove"}) {
    const auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
    auto kernel =
        compiled(problem, codegen::cpu::defaultSchedule(problem, isa, codegen::Strategy::Resident), isa);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (int64_t run : {1, 2, 3, 5, 9, 17}) {
      const gate::Verdict verdict =
          gate::judge(kernel->plan, problem, {.extents = {668, run, 256}, .step = 10000});
      EXPECT_TRUE(verdict.ok) << isaName << " " << verdict.text;
    }
  }
}

TEST(LongSums, OfABatchWithAnOutlierKeepTheirDigitsWhateverTheScheduleAddsFirst) {
  struct Case {
    const char* schedule;
    int64_t rows, features;
  };
  for (const Case& c : {Case{"resident,vector=8,rows=1,unroll=1,tile=2,grain=32,stream=0", 40000, 24},
                        Case{"streamed,vector=8,rows=1,unroll=1,tile=2,grain=131,stream=1", 33, 2047},
                        Case{"streamed,vector=8,rows=1,unroll=1,tile=2,grain=131,stream=1", 8192, 24}}) {
    const Problem problem = problemOf("batch_norm:forward@f32[*x" + std::to_string(c.features) + "]");
    auto kernel = compiled(problem, llvm::cantFail(codegen::cpu::parseSchedule(c.schedule)),
                           llvm::cantFail(codegen::cpu::findIsa("x86-64-v3")));
    ASSERT_TRUE(kernel->plan) << kernel->error;
    const gate::Trial trial{.extents = {1, c.rows, c.features}, .data = HardInput::OutlierRow, .step = 2};
    const gate::Verdict verdict = kernel->judge(problem, trial);
    EXPECT_TRUE(verdict.ok) << c.schedule << " " << verdict.text;
  }
}

TEST(LongSums, OfABatchOf16BitsWithAnOutlierKeepTheirDigits) {
  for (const char* text : {"batch_norm:forward@f16[*x16385]", "batch_norm:forward@bf16[*x16385]"}) {
    const Problem problem = problemOf(text);
    for (const char* schedule : {"resident,vector=8,rows=1,unroll=1,tile=8,grain=7,stream=0,scalar_tail",
                                 "streamed,vector=8,rows=1,unroll=1,tile=8,grain=64,stream=0,scalar_tail",
                                 "streamed,vector=8,rows=2,unroll=1,tile=8,grain=64,stream=0,scalar_tail"}) {
      auto kernel = compiled(problem, llvm::cantFail(codegen::cpu::parseSchedule(schedule)),
                             llvm::cantFail(codegen::cpu::findIsa("x86-64-v3")));
      ASSERT_TRUE(kernel->plan) << kernel->error;
      for (const int64_t rows : {17, 33, 64}) {
        const gate::Verdict verdict = gate::judge(
            kernel->plan, problem, {.extents = {1, rows, *problem.features}, .data = HardInput::OutlierRow});
        EXPECT_TRUE(verdict.ok) << schedule << " " << verdict.text;
        EXPECT_LT(verdict.relativeError.at("saved.mean"), 5e-7) << schedule << " " << rows << " rows";
      }
    }
  }
}

TEST(ChannelsFirst, GradientsOfAFeatureAreSummedInSeveralVectors) {
  for (const char* norm : {"instance_norm", "batch_norm", "layer_norm"})
    for (const codegen::Strategy strategy : {codegen::Strategy::Resident, codegen::Strategy::Streamed}) {
      const Problem problem = problemOf(std::string(norm) + ":backward@f32[*x6x*]{layout=channels_first}");
      if (!llvm::is_contained(codegen::cpu::strategies(problem), strategy)) continue;
      auto schedule = codegen::cpu::defaultSchedule(problem, hostIsa(), strategy);
      schedule.unroll = 4;
      ASSERT_FALSE(codegen::cpu::whyIllegal(problem, schedule, hostIsa())) << norm;
      normc::expectRight(problem, schedule);
    }
}

TEST(Groups, OfRowsThatAreReadAheadAreAllServed) {
  for (const char* text :
       {"group_norm:forward@f32[*x256]{groups=4}", "group_norm:backward@bf16[*x96]{groups=3}"}) {
    const Problem problem = problemOf(text);
    auto schedule =
        codegen::cpu::defaultSchedule(problem, hostIsa(), codegen::cpu::strategies(problem).front());
    schedule.rows = 2, schedule.ahead = true;
    ASSERT_FALSE(codegen::cpu::whyIllegal(problem, schedule, hostIsa())) << text;
    normc::expectRight(problem, schedule);
  }
}

TEST(Groups, MayBeginInsideACacheLineOfARowThatDoesNot) {
  for (const char* text :
       {"group_norm:forward@f32[*x144]{groups=4}", "group_norm:backward@f32[*x144]{groups=4}",
        "group_norm:infer@f32[*x*]{groups=4}", "group_norm_segment:forward@f64[*x*x1000]{groups=4}",
        "power_norm_released:infer@f64[*x1000]{heads=8}"}) {
    const Problem problem = problemOf(text);
    for (const char* isaName : {"x86-64-v3", "host"}) {
      const auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
      const auto schedule =
          codegen::cpu::defaultSchedule(problem, isa, codegen::cpu::strategies(problem).front());
      auto kernel = compiled(problem, schedule, isa);
      ASSERT_TRUE(kernel->large) << text << kernel->error;
      const gate::Verdict verdict = gate::judge(
          kernel->large, problem, {.extents = {1, 33, problem.features.value_or(144)}, .step = 2});
      EXPECT_TRUE(verdict.ok) << isaName << " " << verdict.text;
    }
  }
}

}  // namespace
}  // namespace normc
