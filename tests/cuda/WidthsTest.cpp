// Tensors of one kernel whose elements have several widths: codes, y or a residual of another type than x.
#include <gtest/gtest.h>

#include <algorithm>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

/// Returns how many launches of the trial took the code for operands of any alignment.
int64_t unalignedLaunches(const char* text, int64_t features, const gate::Placement& placement) {
  const Problem problem = *parseProblem(text, findNorm);
  const auto arch = archOf("sm_90");
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  EXPECT_TRUE(kernel->plan) << kernel->error;
  if (!kernel->plan) return -1;
  const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, 5, features}, .placement = placement});
  EXPECT_TRUE(verdict.ok) << verdict.text;
  return std::ranges::count_if(kernel->launches,
                               [](const auto& l) { return l.function.ends_with("_unaligned"); });
}

/// A row of 1000 codes ends inside 16 bytes, and one of 1000 f32 does not.
TEST(EmulatedWidths, RowsAreAlignedByElements) {
  for (const char* text :
       {"rms_norm_residual_int8:forward@f32[*x1000]", "rms_norm:forward@f32[*x1000]{y=bf16}",
        "rms_norm_residual:forward@bf16[*x1000]{stream=f32}"})
    EXPECT_EQ(unalignedLaunches(text, 1000, {}), 0) << text;
}

TEST(EmulatedWidths, OneOddTensorIsEnoughForTheOtherCode) {
  for (const char* text :
       {"rms_norm_residual_int8:forward@f32[*x1000]", "rms_norm:forward@f32[*x1000]{y=bf16}"})
    EXPECT_GT(unalignedLaunches(text, 1000, {.misalign = 1}), 0) << text;
}

/// Angles have rows of their own, whose distance is the caller's.
TEST(EmulatedWidths, RowsOfAnglesAreAligned) {
  EXPECT_EQ(unalignedLaunches("qk_norm_rope:forward@f32[*x512]{heads=4}", 512, {}), 0);
  EXPECT_GT(unalignedLaunches("qk_norm_rope:forward@f32[*x512]{heads=4}", 512, {.rowPadding = 1}), 0);
}

struct Case {
  const char *name, *problem;
  int64_t features;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
class EmulatedWidthsOfModels : public testing::TestWithParam<Case> {};

/// Rows of models, which lie over several warps or blocks.
TEST_P(EmulatedWidthsOfModels, PassInEveryOrder) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  for (const char* name : {"sm_80", "sm_90"}) {
    const auto arch = archOf(name);
    auto kernel = emulated(problem, defaultOf(problem, arch), arch);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (const auto order : {emulator::Order::Ascending, emulator::Order::Random})
      for (const gate::Placement& placement :
           {gate::Placement{}, gate::Placement{.rowPadding = 1}, gate::Placement{.misalign = 1}}) {
        kernel->driver->options.order = order;
        const gate::Verdict verdict =
            kernel->judge(problem, {.extents = {1, 3, GetParam().features}, .placement = placement});
        EXPECT_TRUE(verdict.ok) << name << " " << verdict.text;
      }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedWidthsOfModels,
    testing::Values(Case{"Int8OfRows", "rms_norm_residual_int8:forward@bf16[*x7168]", 7168},
                    Case{"E4m3OfBlocks", "rms_norm_residual_e4m3_block:forward@bf16[*x7168]", 7168},
                    Case{"Turned", "qk_norm_rope:forward@bf16[*x4096]{heads=32}", 4096},
                    Case{"TurnedBackward", "qk_norm_rope:backward@f32[*x4096]{heads=32}", 4096},
                    Case{"Stream", "rms_norm_residual:backward@bf16[*x5120]{stream=f32}", 5120},
                    Case{"Rounds", "rms_norm:forward@bf16[*x5120]{round=normalized}", 5120}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace normc
