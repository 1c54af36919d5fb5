// Every built-in norm, entry, strategy, storage type, layout and mask, compiled
// and judged on hostile data.
#include <gtest/gtest.h>

#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

using codegen::Strategy;

struct Case {
  std::string problem;
  Strategy strategy;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.problem << " " << codegen::name(c.strategy).str();
}

std::vector<Case> casesOf(const Demand& demand) {
  std::vector<Case> cases;
  for (const std::string& text : problemsOf(demand))
    for (Strategy s : codegen::cpu::strategies(problemOf(text))) cases.push_back({text, s});
  return cases;
}

class BuiltinNorms : public testing::TestWithParam<Case> {};

TEST_P(BuiltinNorms, PassTheGate) {
  Problem problem = problemOf(GetParam().problem);
  auto isa = hostIsa();
  auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, GetParam().strategy), isa);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    gate::Verdict verdict = gate::judge(kernel->plan, problem, question);
    EXPECT_TRUE(verdict.ok) << verdict.text;
    if (!kernel->large) continue;
    verdict = gate::judge(kernel->large, problem, question);
    EXPECT_TRUE(verdict.ok) << "as a large call: " << verdict.text;
  }
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  return testName(info.param.problem + "_" + codegen::name(info.param.strategy).str());
}

#define NORMC_SUITE(name, ...) \
  INSTANTIATE_TEST_SUITE_P(name, BuiltinNorms, testing::ValuesIn(casesOf(__VA_ARGS__)), caseName)
NORMC_SHAPES(NORMC_SUITE);
NORMC_CPU_TYPES(NORMC_SUITE);

}  // namespace
}  // namespace normc
