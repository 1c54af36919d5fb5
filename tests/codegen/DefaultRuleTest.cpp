// The schedule where no measurement is near.
#include <utility>

#include "codegen/targets/cpu/DefaultRule.h"
#include "tests/codegen/Support.h"

namespace normc::codegen::cpu {
namespace {

Schedule rule(const std::string& problem, Strategy strategy = Strategy::Resident,
              const char* isa = "x86-64-v4") {
  return ruleSchedule(problemOf(problem), isaOf(isa), strategy);
}

using Step = std::pair<int64_t, int64_t>;

/// The rows of a step and the vectors of each.
Step stepOf(const std::string& problem, Strategy strategy = Strategy::Resident,
            const char* isa = "x86-64-v4") {
  const Schedule s = rule(problem, strategy, isa);
  return {s.rows, s.unroll};
}

TEST(DefaultRule, TwoRowsTakeAQuarterOfTheRegisters) {
  EXPECT_EQ(stepOf("layer_norm:forward@f32[*x1024]"), Step(2, 4));
  EXPECT_EQ(stepOf("layer_norm:forward@f32[*x1024]", Strategy::Resident, "x86-64-v3"), Step(2, 2));
  EXPECT_EQ(stepOf("layer_norm:backward@bf16[*x1024]"), Step(2, 2)) << "a vector is two registers";
  EXPECT_EQ(stepOf("layer_norm:backward@bf16[*x1024]", Strategy::Resident, "x86-64-v3"), Step(2, 2));
  EXPECT_EQ(stepOf("power_norm:backward@f32[*x768]", Strategy::Streamed), Step(2, 4));
  EXPECT_EQ(stepOf("layer_norm:forward@f32[*x*]"), Step(2, 4)) << "of any length";
}

TEST(DefaultRule, NarrowRowsWaitForTheirStatisticsTogether) {
  EXPECT_EQ(stepOf("layer_norm:forward@f32[*x384]"), Step(4, 1));
  EXPECT_EQ(stepOf("layer_norm:forward@f32[*x385]"), Step(2, 4));
  EXPECT_EQ(stepOf("power_norm_released:backward@f32[*x768]{heads=8}", Strategy::Streamed), Step(4, 1));
  EXPECT_EQ(stepOf("power_norm:forward@f32[*x64]", Strategy::Streamed), Step(2, 4)) << "has one already";
}

TEST(DefaultRule, ShortRowsAreLookedAheadFor) {
  EXPECT_TRUE(rule("layer_norm:forward@f32[*x128]").ahead);
  EXPECT_FALSE(rule("layer_norm:forward@f32[*x129]").ahead);
  EXPECT_TRUE(rule("group_norm:forward@f32[*x1536]{groups=32}").ahead);
  EXPECT_TRUE(rule("power_norm_released:forward@f32[*x768]{heads=12}", Strategy::Streamed).ahead);
  EXPECT_FALSE(rule("power_norm:forward@f32[*x64]", Strategy::Streamed).ahead);
  EXPECT_FALSE(rule("layer_norm:forward@f32[*x*]").ahead) << "of any length";
}

TEST(DefaultRule, RowsWithNothingToShareGoOneByOne) {
  EXPECT_EQ(stepOf("power_norm:infer@f32[*x768]", Strategy::Streamed), Step(1, 8)) << "sums nothing";
  EXPECT_EQ(stepOf("power_norm_released:infer@f32[*x8192]{heads=8}", Strategy::Streamed), Step(2, 4))
      << "sums groups of a row";
  EXPECT_EQ(stepOf("layer_norm:forward@f32[*x16384]"), Step(2, 4));
  EXPECT_EQ(stepOf("layer_norm:forward@f32[*x16385]"), Step(1, 8)) << "is long enough by itself";
  EXPECT_EQ(stepOf("layer_norm:backward@f32[*x4096]", Strategy::Split), Step(1, 8));
}

TEST(DefaultRule, ColumnsGoDownOneRowAfterTheOtherAndAreNotStreamed) {
  const Schedule forward = rule("batch_norm:forward@f32[*x768]"),
                 backward = rule("batch_norm:backward@f32[*x768]");
  for (const Schedule& s : {forward, backward, rule("instance_norm:forward@f32[*x*x64]")}) {
    EXPECT_EQ(std::pair(s.rows, s.unroll), Step(1, 1)) << s.text();
    EXPECT_EQ(s.stream, 0) << s.text();
    EXPECT_FALSE(s.fetch) << s.text();
  }
  EXPECT_EQ(forward.tile, 8);
  EXPECT_EQ(backward.tile, 4) << "has two sums";
  EXPECT_EQ(rule("batch_norm:forward@bf16[*x768]").tile, 4) << "a vector is two registers";
}

TEST(DefaultRule, LargeCallsHaveFourRowsInFlightAndAskForTheNext) {
  for (const char* problem : {"layer_norm:forward@f32[*x1024]", "rms_norm:backward@bf16[*x768]",
                              "power_norm_released:forward@f32[*x1024]{heads=8}"}) {
    const Schedule s = rule(problem, legalStrategies(problemOf(problem)).front());
    EXPECT_EQ(s.stream, 4) << problem;
    EXPECT_TRUE(s.fetch) << problem;
  }
}

TEST(DefaultRule, VectorsFillTheRegister) {
  const auto vector = [](const char* problem, const char* isa) {
    return rule(problem, Strategy::Resident, isa).vector;
  };
  EXPECT_EQ(vector("layer_norm:forward@f32[*x1024]", "x86-64-v4"), 16);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x1024]", "x86-64-v3"), 8);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x1024]", "aarch64"), 4);
  EXPECT_EQ(vector("layer_norm:forward@f64[*x1024]", "x86-64-v3"), 4);
  EXPECT_EQ(vector("layer_norm:forward@f16[*x1024]", "x86-64-v3"), 8) << "statistics are f32";
  for (const char* isa : {"x86-64-v4", "x86-64-v4-bf16"}) {
    EXPECT_EQ(vector("layer_norm:forward@bf16[*x1024]", isa), 32) << "two registers are rounded as one";
    EXPECT_EQ(vector("layer_norm:forward@f16[*x1024]", isa), 16) << "is converted by one instruction";
  }
  EXPECT_EQ(vector("layer_norm:forward@bf16[*x1024]", "x86-64-v3"), 16);
  EXPECT_EQ(vector("layer_norm:forward@bf16[*x1000]", "x86-64-v3"), 8) << "a longer rest would go one by one";
}

TEST(DefaultRule, VectorsFillShortRows) {
  const auto vector = [](const char* problem) {
    return rule(problem, legalStrategies(problemOf(problem))[0]).vector;
  };
  EXPECT_EQ(vector("layer_norm:forward@f32[*x48]"), 16);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x24]"), 8) << "three vectors, rather than one and a half";
  EXPECT_EQ(vector("layer_norm:forward@f32[*x25]"), 16);
  EXPECT_EQ(vector("layer_norm:forward@f32[*x4]"), 4);
  EXPECT_EQ(vector("power_norm_released:forward@f32[*x768]{heads=96}"), 8);
  EXPECT_EQ(vector("power_norm:forward@f32[*x4]"), 16) << "vectors of streams run over features";
}

TEST(DefaultRule, RestsOfARowAreMaskedUnlessTheyAreOneAccessOrMasksAreSlow) {
  const auto tail = [](const char* problem, Strategy strategy, const char* isa) {
    return rule(problem, strategy, isa).scalarTail;
  };
  EXPECT_TRUE(tail("power_norm:forward@f32[*x65]", Strategy::Streamed, "x86-64-v4"));
  EXPECT_FALSE(tail("power_norm:forward@f32[*x71]", Strategy::Streamed, "x86-64-v4"));
  EXPECT_TRUE(tail("power_norm:forward@f32[*x71]", Strategy::Streamed, "x86-64-v3"));
  EXPECT_FALSE(tail("power_norm:forward@f32[*x72]", Strategy::Streamed, "x86-64-v3")) << "nothing is left";
  EXPECT_FALSE(tail("batch_norm:forward@f32[*x71]", Strategy::Resident, "x86-64-v3"))
      << "each rest is a pass";
  EXPECT_TRUE(tail("layer_norm:backward@f32[*x71]", Strategy::Resident, "x86-64-v3"));
}

TEST(DefaultRule, ATaskIsWorthAThread) {
  const auto grain = [](const char* problem, Strategy strategy = Strategy::Resident) {
    return rule(problem, strategy).grain;
  };
  EXPECT_EQ(grain("layer_norm:forward@f32[*x1024]"), 16);
  EXPECT_EQ(grain("layer_norm:backward@f32[*x1024]"), 32) << "leaves sums to be added up";
  EXPECT_EQ(grain("layer_norm:backward@f32[*x4096]"), 16) << "sixteen rows at least";
  EXPECT_EQ(grain("layer_norm:backward@f32[*x16384]"), 4) << "unless they have 256 KiB";
  EXPECT_EQ(grain("batch_norm:backward@f32[*x1024]", Strategy::Streamed), 64) << "x is read twice";
}

TEST(DefaultRule, TasksOfChannelsHaveAMegabyte) {
  const auto grain = [](const char* problem, Strategy strategy = Strategy::Streamed) {
    return rule(problem, strategy).grain;
  };
  EXPECT_EQ(grain("batch_norm:forward@f32[*x256x*]{layout=channels_first}"), 1024);
  EXPECT_EQ(grain("batch_norm:forward@bf16[*x256x*]{layout=channels_first}"), 2048);
  EXPECT_EQ(grain("batch_norm:forward@f32[*x16x*]{layout=channels_first}"), 4096);
  EXPECT_EQ(grain("batch_norm:forward@f32[*x2048x*]{layout=channels_first}"), 1024)
      << "and so many rows at least";
  EXPECT_EQ(grain("layer_norm:forward@f32[*x256x*]{layout=channels_first}", Strategy::Resident), 1024);
  EXPECT_EQ(grain("rms_norm:forward@f32[*x16x*]{layout=channels_first}", Strategy::Resident), 4096);
}

TEST(DefaultRule, AStepHasFourChannels) {
  for (const char* problem : {"layer_norm:forward@f32[*x256x*]{layout=channels_first}",
                              "batch_norm:backward@f32[*x256x*]{layout=channels_first}"}) {
    EXPECT_EQ(stepOf(problem), Step(4, 1)) << problem;
    EXPECT_EQ(rule(problem).stream, 4) << problem;
  }
}

}  // namespace
}  // namespace normc::codegen::cpu
