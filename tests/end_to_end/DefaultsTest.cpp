// A sample of what `normc_judge_defaults` judges in full: defaults for every instruction set that this
// processor runs, those without AVX-512 among them wherever it has it.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Defaults.h"
#include "tests/end_to_end/Demand.h"

namespace normc {
namespace {

class SampledDefaults : public testing::TestWithParam<int64_t> {};

TEST_P(SampledDefaults, PassTheGateForEveryInstructionSet) {
  Judged judged;
  for (const std::string& text : problemsOf({.features = GetParam()}))
    judgeDefaults(problemOf(text), GetParam(), runnableTargets("mlir"), judged);
  for (const std::string& wrong : judged.wrong) ADD_FAILURE() << wrong;
  EXPECT_GT(judged.kernels, int64_t(2 * builtinNorms().size()));
  EXPECT_LE(judged.worstRatio, 1) << judged.worst;
}

INSTANTIATE_TEST_SUITE_P(Features, SampledDefaults, testing::Values(256, 1000),
                         testing::PrintToStringParamName());

TEST(RunnableTargets, HaveAvx2WhereverItIs) {
  const auto targets = runnableTargets("mlir");
  ASSERT_FALSE(targets.empty());
  if (hostIsa().name.starts_with("x86-64")) EXPECT_EQ(targets.front()->name(), "x86-64-v3");
  EXPECT_EQ(targets.back()->name(), hostIsa().name);
}

}  // namespace
}  // namespace normc
