// The same bits for any number of threads and at every repetition.
#include <gtest/gtest.h>

#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

/// Returns the outputs of one call.
Bits outputsOf(const normc_plan* plan, const Problem& problem, const gate::Trial& trial) {
  auto arguments = gate::argumentsFor(problem, trial);
  EXPECT_TRUE(arguments);
  const gate::CallResult result = gate::Call(plan, problem, *arguments, trial.placement).run();
  EXPECT_EQ(result.fault, "");
  return bitsOf(result);
}

class Determinism : public testing::TestWithParam<const char*> {};

TEST_P(Determinism, HoldsForAnyNumberOfThreads) {
  Problem problem = problemOf(GetParam());
  auto isa = hostIsa();
  auto schedule = codegen::cpu::defaultSchedule(problem, isa, codegen::legalStrategies(problem).front());
  gate::Trial trial{.extents = {1, 1029, *problem.features}, .step = 3};
  auto alone = outputsOf(compiled(problem, schedule, isa, 1)->plan, problem, trial);
  for (int threads : {2, 3, 7})
    EXPECT_EQ(outputsOf(compiled(problem, schedule, isa, threads)->plan, problem, trial), alone)
        << threads << " threads";
}

TEST(SplitRows, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const char* text : {"layer_norm:forward@f32[*x20000]", "layer_norm:backward@f32[*x20000]",
                           "rms_norm:backward@f32[*x20000]"}) {
    Problem problem = problemOf(text);
    auto schedule = codegen::cpu::defaultSchedule(problem, hostIsa(), codegen::Strategy::Split);
    for (int64_t rows : {1, 3}) {
      gate::Trial trial{.extents = {1, rows, *problem.features}, .step = 3};
      auto alone = outputsOf(compiled(problem, schedule, hostIsa(), 1)->plan, problem, trial);
      for (int threads : {2, 5})
        EXPECT_EQ(outputsOf(compiled(problem, schedule, hostIsa(), threads)->plan, problem, trial), alone)
            << text << ", " << threads;
    }
  }
}

TEST(Runs, HaveTheSameBitsForAnyNumberOfThreadsAndPastTheCaches) {
  for (const char* text : {"batch_norm:forward@f32[*x24x*]{layout=channels_first}",
                           "batch_norm:backward@f32[*x24x*]{layout=channels_first}",
                           "power_norm:forward@f32[*x24x*]{layout=channels_first}",
                           "power_norm:backward@f32[*x24x*]{layout=channels_first}"}) {
    Problem problem = problemOf(text);
    auto schedule = codegen::cpu::defaultSchedule(problem, hostIsa(), codegen::Strategy::Streamed);
    schedule.grain = 512;
    auto one = compiled(problem, schedule, hostIsa(), 1);
    ASSERT_TRUE(one->large) << one->error;
    for (const Extents& extents : {Extents{37, 64, 24}, {2, 5008, 24}, {7, 196, 24}}) {
      gate::Trial trial{.extents = extents, .step = 3}, elsewhere = trial;
      elsewhere.placement.misalign = 1;
      auto alone = outputsOf(one->plan, problem, trial), large = outputsOf(one->large, problem, trial);
      EXPECT_EQ(outputsOf(one->large, problem, elsewhere), large) << text;
      for (int threads : {2, 5}) {
        auto many = compiled(problem, schedule, hostIsa(), threads);
        EXPECT_EQ(outputsOf(many->plan, problem, trial), alone) << text << ", " << threads;
        EXPECT_EQ(outputsOf(many->large, problem, trial), large) << text << ", " << threads;
      }
    }
  }
}

TEST_P(Determinism, HoldsForAThousandRepetitions) {
  Problem problem = problemOf(GetParam());
  auto isa = hostIsa();
  auto schedule = codegen::cpu::defaultSchedule(problem, isa, codegen::legalStrategies(problem).front());
  auto kernel = compiled(problem, schedule, isa, 2);
  gate::Trial trial{.extents = {1, 97, *problem.features}, .step = 3};
  auto arguments = gate::argumentsFor(problem, trial);
  ASSERT_TRUE(arguments);
  gate::Call call(kernel->plan, problem, *arguments, trial.placement);
  const gate::CallResult result = call.run();
  ASSERT_EQ(result.fault, "");
  const Bits first = bitsOf(result);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(bitsOf(call.run()), first) << "repetition " << i;
}

/// Returns the number of kernels that were compared.
int comparePastCaches(const Problem& problem, const codegen::cpu::Isa& isa) {
  int kernels = 0;
  for (const auto strategy : codegen::legalStrategies(problem))
    for (const bool scalarTail : {false, true}) {
      auto schedule = codegen::cpu::defaultSchedule(problem, isa, strategy);
      schedule.scalarTail = scalarTail;
      if (codegen::cpu::whyIllegal(problem, schedule, isa)) continue;
      auto kernel = compiled(problem, schedule, isa);
      EXPECT_TRUE(kernel->plan) << kernel->error;
      if (!kernel->large) continue;  // whole columns are read once, however large the call
      gate::Trial lines{.extents = {1, 1029, *problem.features}, .step = 3}, elsewhere = lines;
      elsewhere.placement.misalign = 1;
      EXPECT_EQ(outputsOf(kernel->large, problem, elsewhere), outputsOf(kernel->large, problem, lines))
          << isa.name.str() << " " << schedule.text();
      ++kernels;
    }
  return kernels;
}

TEST_P(Determinism, DoesNotDependOnWhetherOutputsGoPastTheCaches) {
  const Problem problem = problemOf(GetParam());
  for (const char* name : {"x86-64-v3", "host"})
    EXPECT_GE(comparePastCaches(problem, llvm::cantFail(codegen::cpu::findIsa(name))), 1) << name;
}

/// Equal rows have equal outputs, whether a row is in a group of eight or alone at the end.
class AlikeRows : public testing::TestWithParam<const char*> {};

TEST_P(AlikeRows, HaveTheSameBitsWhereverTheyStand) {
  Problem problem = problemOf(GetParam());
  const auto isa = hostIsa();
  for (int64_t rows : {1, 2, 4, 8}) {
    auto schedule = codegen::cpu::defaultSchedule(problem, isa, codegen::legalStrategies(problem).front());
    schedule.rows = rows, schedule.unroll = 2;
    for (int flags : {0, 1, 2, 3}) {
      schedule.ahead = (flags & 1) && rows > 1, schedule.inTurn = (flags & 2) && rows > 1;
      const int64_t count = 15, width = *problem.features;
      gate::Trial trial{.extents = {1, count, width}, .step = 3};
      auto drawn = gate::argumentsFor(problem, trial);
      ASSERT_TRUE(drawn);
      auto arguments = *drawn;
      for (int64_t i = width; i < count * width; ++i) arguments.x[size_t(i)] = arguments.x[size_t(i % width)];
      auto kernel = compiled(problem, schedule, isa, 1);
      const Bits outputs = bitsOf(gate::Call(kernel->plan, problem, arguments, trial.placement).run());
      const auto& y = outputs.at("y");
      for (int64_t i = width; i < count * width; ++i)
        ASSERT_EQ(y[size_t(i)], y[size_t(i % width)]) << schedule.text() << ", row " << i / width;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Norms, AlikeRows,
                         testing::Values("layer_norm:forward@f32[*x100]", "rms_norm:forward@f32[*x96]",
                                         "group_norm:forward@f32[*x96]{groups=4}",
                                         "power_norm_released:infer@f32[*x96]{heads=4}"));
INSTANTIATE_TEST_SUITE_P(Norms, Determinism,
                         testing::Values("layer_norm:backward@f32[*x64]", "batch_norm:forward@f32[*x64]",
                                         "batch_norm:backward@f32[*x64]", "power_norm:forward@f32[*x64]",
                                         "power_norm:backward@f32[*x64]", "power_norm:forward@f32[*x130]",
                                         "layer_norm:backward@f32[*x130]",
                                         "instance_norm:forward@f32[*x24x*]{layout=channels_first}",
                                         "instance_norm:backward@f32[*x24x*]{layout=channels_first}",
                                         "power_norm_released:backward@f32[*x64]{heads=4}"));

}  // namespace
}  // namespace normc
