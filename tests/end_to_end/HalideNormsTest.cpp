// Built-in norms through the Halide generator, judged as NormsTest judges the MLIR lowering.
#include <set>

#include "codegen/targets/halide/HalideTarget.h"
#include "codegen/targets/halide/Schedule.h"
#include "tests/end_to_end/NormCases.h"

namespace normc {
namespace {

const Divided<NormCase>& allCases() {
  static const Divided<NormCase> all = normCases([](const Problem& problem) {
    if (codegen::halide::whyIllegal(problem)) return decltype(codegen::legalStrategies(problem))();
    return codegen::legalStrategies(problem);
  });
  return all;
}

TEST(HalideNormCases, HaveEachNormButThoseThatTurnPairs) {
  std::set<std::string> found;
  for (const std::vector<NormCase>& part : {allCases().sample, allCases().rest})
    for (const NormCase& c : part) found.insert(c.problem.substr(0, c.problem.find(':')));
  for (const BuiltinNorm& norm : builtinNorms())
    EXPECT_NE(found.contains(norm.name), norm.spec->rope.has_value()) << norm.name;
}

class HalideNorms : public testing::TestWithParam<NormCase> {};

TEST_P(HalideNorms, PassTheGate) {
  auto target = codegen::halide::findTarget("host");
  if (!target) GTEST_SKIP() << llvm::toString(target.takeError());
  const Problem problem = problemOf(GetParam().problem);
  const auto schedule = codegen::halide::defaultSchedule(problem, hostIsa(), GetParam().strategy);
  expectPassesTheGate(problem, *compiled(problem, *target, schedule.text()));
}

#define NORMC_SUITE(name, ...) NORMC_NORM_SUITE(name, HalideNorms, allCases())
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
