// Shift estimates of columns: samples of normal data whose centre was far from the mean of a column.
#include <gtest/gtest.h>

#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

/// Normal data of one column of which eight samples, or four among masked rows, are 1 to 2 standard
/// deviations from the mean: a variance about the centre of those misses its bound by 1 to 50 %.
struct FarSamples {
  codegen::Strategy strategy;
  int64_t rows;
  uint64_t seed;
  bool mask = false;
};
void PrintTo(const FarSamples& s, std::ostream* out) {
  *out << codegen::name(s.strategy).str() << ", " << s.rows << " rows, seed " << s.seed
       << (s.mask ? ", masked" : "");
}

class Shift : public testing::TestWithParam<FarSamples> {};

TEST_P(Shift, IsNearTheMeanOfEveryColumn) {
  const auto& [strategy, rows, seed, mask] = GetParam();
  const Problem problem = problemOf(std::string("batch_norm:forward@f32[*x32]") + (mask ? "{mask}" : ""));
  const codegen::cpu::Schedule schedule{
      .strategy = strategy, .vector = 8, .rows = 2, .unroll = 1, .tile = 1, .grain = 128};
  auto kernel = compiled(problem, schedule, hostIsa());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Trial trial{.extents = {1, rows, 32}, .data = HardInput::Huge, .seed = seed};
  const gate::Verdict verdict = gate::judge(kernel->plan, problem, trial);
  EXPECT_TRUE(verdict.ok) << verdict.text;
  EXPECT_LT(verdict.worstRatio, 0.7) << verdict.worstOutput;
}
INSTANTIATE_TEST_SUITE_P(Samples, Shift,
                         testing::Values(FarSamples{codegen::Strategy::Resident, 129, 4643},
                                         FarSamples{codegen::Strategy::Resident, 33, 1798, true},
                                         FarSamples{codegen::Strategy::Resident, 33, 1984, true},
                                         FarSamples{codegen::Strategy::Resident, 63, 4120, true},
                                         FarSamples{codegen::Strategy::Streamed, 33, 2322},
                                         FarSamples{codegen::Strategy::Streamed, 63, 722},
                                         FarSamples{codegen::Strategy::Streamed, 63, 9165}),
                         [](const auto& info) {
                           return codegen::name(info.param.strategy).str() + "_" +
                                  std::to_string(info.param.rows) + "_rows_" +
                                  std::to_string(info.param.seed);
                         });

}  // namespace
}  // namespace normc
