// Every built-in norm, entry, strategy, storage type, layout and mask, compiled
// and judged on hostile data.
#include <gtest/gtest.h>

#include "tests/Kinds.h"
#include "tests/Sample.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

using codegen::Strategy;

struct Case {
  std::string list, problem;
  Strategy strategy;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.problem << " " << codegen::name(c.strategy).str();
}

/// The lists of all suites, and what of them is a sample: each kind of norm meets each entry, strategy, type,
/// layout and mask that it has, and these each other. Each norm has each of its entries.
const Divided<Case>& allCases() {
  static const Divided<Case> all = [] {
    std::vector<Case> cases;
    auto add = [&](const char* list, const Demand& demand) {
      for (const std::string& text : problemsOf(demand))
        for (Strategy s : codegen::cpu::strategies(problemOf(text))) cases.push_back({list, text, s});
    };
#define NORMC_ADD(name, ...) add(#name, __VA_ARGS__)
    NORMC_SHAPES(NORMC_ADD);
    NORMC_CPU_TYPES(NORMC_ADD);
    return divided(
        cases,
        [](const Case& c) {
          const Problem problem = problemOf(c.problem);
          return Properties{c.list, kindOf(*problem.spec), std::string(name(problem.entry)),
                            codegen::name(c.strategy).str()};
        },
        [](const Case& c) { return c.problem.substr(0, c.problem.find("@")); });
  }();
  return all;
}

class BuiltinNorms : public testing::TestWithParam<Case> {};

TEST_P(BuiltinNorms, PassTheGate) {
  Problem problem = problemOf(GetParam().problem);
  auto isa = hostIsa();
  auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, GetParam().strategy), isa);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    const gate::Verdict verdict = kernel->judge(problem, question);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  return testName(info.param.problem + "_" + codegen::name(info.param.strategy).str());
}

#define NORMC_SUITE(name, ...)                 \
  NORMC_INSTANTIATE_SAMPLE(name, BuiltinNorms, \
                           part(allCases(), [](const Case& c) { return c.list == #name; }), caseName)
NORMC_SHAPES(NORMC_SUITE);
NORMC_CPU_TYPES(NORMC_SUITE);

}  // namespace
}  // namespace normc
