// Every built-in norm, entry, strategy, storage type, layout and mask through the Halide
// generator, judged on hostile data as NormsTest judges the MLIR lowering.
#include <gtest/gtest.h>

#include "codegen/targets/halide/HalideTarget.h"
#include "codegen/targets/halide/Schedule.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

struct Case {
  std::string problem;
  codegen::Strategy strategy;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.problem << " " << codegen::name(c.strategy).str();
}

std::vector<Case> casesOf(const Demand& demand) {
  std::vector<Case> cases;
  for (const std::string& text : problemsOf(demand))
    for (codegen::Strategy s : codegen::legalStrategies(problemOf(text)))
      if (!codegen::halide::whyIllegal(problemOf(text))) cases.push_back({text, s});
  return cases;
}

class HalideNorms : public testing::TestWithParam<Case> {};

TEST_P(HalideNorms, PassTheGate) {
  auto target = codegen::halide::findTarget("host");
  if (!target) GTEST_SKIP() << llvm::toString(target.takeError());
  const Problem problem = problemOf(GetParam().problem);
  const auto schedule = codegen::halide::defaultSchedule(problem, hostIsa(), GetParam().strategy);
  auto kernel = compiled(problem, *target, schedule.text());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    const gate::Verdict verdict = gate::judge(kernel->plan, problem, question);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  return testName(info.param.problem + "_" + codegen::name(info.param.strategy).str());
}

#define NORMC_SUITE(name, ...) \
  INSTANTIATE_TEST_SUITE_P(name, HalideNorms, testing::ValuesIn(casesOf(__VA_ARGS__)), caseName)
NORMC_SHAPES(NORMC_SUITE);
NORMC_CPU_TYPES(NORMC_SUITE);

}  // namespace
}  // namespace normc
