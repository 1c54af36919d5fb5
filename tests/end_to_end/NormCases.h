// Every built-in norm, entry, strategy, storage type, layout and mask: the cases of a generator of CPU code.
#pragma once

#include <gtest/gtest.h>

#include "tests/Kinds.h"
#include "tests/Sample.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Questions.h"

namespace normc {

struct NormCase {
  std::string list, problem;
  codegen::Strategy strategy;

  std::string name() const { return testName(problem + "_" + codegen::name(strategy).str()); }
};
inline void PrintTo(const NormCase& c, std::ostream* out) {
  *out << c.problem << " " << codegen::name(c.strategy).str();
}

/// Returns the lists of all suites, with the strategies that `strategiesOf(problem)` returns. In the sample
/// each kind of norm meets each entry, strategy, type, layout and mask that it has, and these each other.
/// Each norm has each of its entries.
template <typename Function>
Divided<NormCase> normCases(Function strategiesOf) {
  std::vector<NormCase> cases;
  auto add = [&](const char* list, const Demand& demand) {
    for (const std::string& text : problemsOf(demand))
      for (codegen::Strategy s : strategiesOf(problemOf(text))) cases.push_back({list, text, s});
  };
#define NORMC_ADD(name, ...) add(#name, __VA_ARGS__)
  NORMC_SHAPES(NORMC_ADD);
  NORMC_CPU_TYPES(NORMC_ADD);
#undef NORMC_ADD
  return divided(
      cases,
      [](const NormCase& c) {
        const Problem problem = problemOf(c.problem);
        return Properties{c.list, kindOf(*problem.spec), std::string(name(problem.entry)),
                          codegen::name(c.strategy).str()};
      },
      [](const NormCase& c) { return c.problem.substr(0, c.problem.find("@")); });
}

/// Judges a kernel on hostile data.
inline void expectPassesTheGate(const Problem& problem, Compiled& kernel) {
  ASSERT_TRUE(kernel.plan) << kernel.error;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    const gate::Verdict verdict = kernel.judge(problem, question);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

/// Instantiates `suite` with those of `cases` that are of the list `shape`.
#define NORMC_NORM_SUITE(shape, suite, cases)                                                             \
  NORMC_INSTANTIATE_SAMPLE(shape, suite, part(cases, [](const NormCase& c) { return c.list == #shape; }), \
                           [](const auto& info) { return info.param.name(); })

}  // namespace normc
