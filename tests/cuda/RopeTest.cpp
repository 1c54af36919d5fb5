// Pairs of a part of the features.
#include <gtest/gtest.h>

#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

/// Behind an infinity a pair at an angle of 0 has a gradient of NaN; a feature that is not turned has its
/// own.
TEST(EmulatedRope, TellsAnAngleOfZeroFromAFeatureThatIsNotTurned) {
  const auto judge = [](const std::string& turn, int64_t features) {
    const Problem problem = problemOf(
        "norm n {\n  reduce rows\n  center current\n  moment central\n"
        "  divide_by running\n  running decay = 0.99\n  backward frozen\n"
        "  rope " +
            turn + "\n  activation sigmoid\n}\n",
        ":backward@f32[*x" + std::to_string(features) + "]");
    for (const char* name : {"sm_80", "sm_90"}) {
      const auto arch = archOf(name);
      auto kernel = emulated(problem, defaultOf(problem, arch), arch);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      const gate::Verdict verdict =
          kernel->judge(problem, {.extents = {1, 33, features}, .data = HardInput::WithInfinity, .step = 3});
      EXPECT_TRUE(verdict.ok) << turn << " for " << name << ": " << verdict.text;
    }
  };
  for (const std::string pairs : {"half", "interleaved"}) {
    judge(pairs + "(groups = 4, features = 4)", 16);   // all of them
    judge(pairs + "(groups = 2, features = 6)", 20);   // accesses of turned and other features
    judge(pairs + "(groups = 2, features = 32)", 96);  // accesses of one kind
  }
}

}  // namespace
}  // namespace normc
