// A sample of what `normc_judge_defaults` judges in full: defaults for every instruction set that this
// processor runs, those without AVX-512 among them wherever it has it.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/Kinds.h"
#include "tests/Sample.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Defaults.h"
#include "tests/end_to_end/Demand.h"

namespace normc {
namespace {

struct Case {
  std::string problem;
  int64_t features;  ///< that were asked for
  std::string set;   ///< without a core, and with the one of this machine
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.problem << " for " << c.set; }

/// In the sample each kind of norm meets each entry, number of features and instruction set, and these each
/// other. Each norm is there.
Divided<Case> cases() {
  std::vector<Case> list;
  for (int64_t features : {256, 1000})
    for (const std::string& text : problemsOf({.features = features}))
      for (const codegen::cpu::Isa& isa : codegen::cpu::instructionSets())
        if (isa.triple == hostIsa().triple) list.push_back({text, features, isa.name.str()});
  return divided(
      list,
      [](const Case& c) {
        const Problem problem = problemOf(c.problem);
        return Properties{kindOf(*problem.spec), std::string(name(problem.entry)), std::to_string(c.features),
                          c.set};
      },
      [](const Case& c) { return c.problem.substr(0, c.problem.find(':')); });
}

class SampledDefaults : public testing::TestWithParam<Case> {};

TEST_P(SampledDefaults, PassTheGate) {
  const auto& [problem, asked, set] = GetParam();
  std::vector<codegen::TargetPtr> targets = runnableTargets("mlir");
  llvm::erase_if(targets, [&](const codegen::TargetPtr& target) { return target->name() != set; });
  if (targets.empty()) GTEST_SKIP() << "a processor that runs " << set << " is needed";
  Judged judged;
  judgeDefaults(problemOf(problem), targets, judged);
  for (const std::string& wrong : judged.wrong) ADD_FAILURE() << wrong;
  EXPECT_GT(judged.kernels, 0);
  EXPECT_LE(judged.worstRatio, 1) << judged.worst;
}

NORMC_INSTANTIATE_SAMPLE(Cpu, SampledDefaults, cases(), [](const auto& info) {
  return testName(info.param.problem + "_" + info.param.set);
});

TEST(RunnableTargets, HaveAvx2WhereverItIs) {
  const auto targets = runnableTargets("mlir");
  ASSERT_FALSE(targets.empty());
  if (hostIsa().name.starts_with("x86-64")) EXPECT_EQ(targets.front()->name(), "x86-64-v3");
  EXPECT_EQ(targets.back()->name(), hostIsa().name);
}

}  // namespace
}  // namespace normc
