// Every built-in norm, entry, strategy, storage type, layout and mask through the Halide
// generator, judged on hostile data as NormsTest judges the MLIR lowering.
#include <gtest/gtest.h>

#include "codegen/targets/halide/HalideTarget.h"
#include "codegen/targets/halide/Schedule.h"
#include "tests/Kinds.h"
#include "tests/Sample.h"
#include "tests/end_to_end/Compiled.h"
#include "tests/end_to_end/Demand.h"
#include "tests/end_to_end/Questions.h"

namespace normc {
namespace {

struct Case {
  std::string list, problem;
  codegen::Strategy strategy;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.problem << " " << codegen::name(c.strategy).str();
}

/// As in NormsTest.cpp: a sample has each two values of list, kind, entry and strategy, and each entry of a
/// norm.
const Divided<Case>& allCases() {
  static const Divided<Case> all = [] {
    std::vector<Case> cases;
    auto add = [&](const char* list, const Demand& demand) {
      for (const std::string& text : problemsOf(demand))
        for (codegen::Strategy s : codegen::legalStrategies(problemOf(text)))
          if (!codegen::halide::whyIllegal(problemOf(text))) cases.push_back({list, text, s});
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

class HalideNorms : public testing::TestWithParam<Case> {};

TEST_P(HalideNorms, PassTheGate) {
  auto target = codegen::halide::findTarget("host");
  if (!target) GTEST_SKIP() << llvm::toString(target.takeError());
  const Problem problem = problemOf(GetParam().problem);
  const auto schedule = codegen::halide::defaultSchedule(problem, hostIsa(), GetParam().strategy);
  auto kernel = compiled(problem, *target, schedule.text());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    const gate::Verdict verdict = kernel->judge(problem, question);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  return testName(info.param.problem + "_" + codegen::name(info.param.strategy).str());
}

#define NORMC_SUITE(name, ...)                \
  NORMC_INSTANTIATE_SAMPLE(name, HalideNorms, \
                           part(allCases(), [](const Case& c) { return c.list == #name; }), caseName)
NORMC_SHAPES(NORMC_SUITE);
NORMC_CPU_TYPES(NORMC_SUITE);

/// Normal data of one column of which eight samples, or four among masked rows, are 1 to 2 standard
/// deviations from the mean: a variance about the centre of those misses its bound by 20 to 120 %.
struct FarSamples {
  int64_t rows;
  uint64_t seed;
  bool mask;
};
void PrintTo(const FarSamples& s, std::ostream* out) {
  *out << s.rows << " rows, seed " << s.seed << (s.mask ? ", masked" : "");
}

class HalideShift : public testing::TestWithParam<FarSamples> {};

TEST_P(HalideShift, IsNearTheMeanOfEveryColumn) {
  auto target = codegen::halide::findTarget("host");
  if (!target) GTEST_SKIP() << llvm::toString(target.takeError());
  const auto& [rows, seed, mask] = GetParam();
  const Problem problem = problemOf(std::string("batch_norm:forward@f32[*x32]") + (mask ? "{mask}" : ""));
  const codegen::halide::Schedule schedule{
      .strategy = codegen::Strategy::Resident, .vector = 8, .rows = 2, .unroll = 1, .tile = 1};
  auto kernel = compiled(problem, *target, schedule.text());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Trial trial{.extents = {1, rows, 32}, .data = HardInput::Huge, .seed = seed};
  const gate::Verdict verdict = gate::judge(kernel->plan, problem, trial);
  EXPECT_TRUE(verdict.ok) << verdict.text;
  EXPECT_LT(verdict.worstRatio, 0.7) << verdict.worstOutput;
}
INSTANTIATE_TEST_SUITE_P(Samples, HalideShift,
                         testing::Values(FarSamples{33, 44238, false}, FarSamples{33, 109965, false},
                                         FarSamples{37, 8853, false}, FarSamples{63, 95482, false},
                                         FarSamples{33, 3308, true}, FarSamples{37, 8208, true},
                                         FarSamples{63, 2961, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.rows) + "_rows_" +
                                  std::to_string(info.param.seed);
                         });

}  // namespace
}  // namespace normc
