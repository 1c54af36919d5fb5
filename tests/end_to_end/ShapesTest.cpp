// One kernel for any number of features, over the sizes where loops change shape:
// less than a vector, one more than a power of two, more than a tile, none at all.
#include <gtest/gtest.h>

#include "runtime/normc.hpp"
#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

class AnySize : public testing::TestWithParam<const char*> {};

TEST_P(AnySize, ServesEveryShape) {
  Problem problem = problemOf(GetParam());
  for (const char* isaName : {"x86-64-v3", "host"}) {
    auto isa = llvm::cantFail(codegen::cpu::findIsa(isaName));
    for (codegen::Strategy strategy : codegen::cpu::strategies(problem)) {
      auto kernel = compiled(problem, codegen::cpu::defaultSchedule(problem, isa, strategy), isa);
      ASSERT_TRUE(kernel->plan) << kernel->error;
      for (int64_t features : {1, 3, 7, 8, 15, 127, 128, 768, 1000, 1024, 4097}) {
        for (int64_t rows : {0, 1, 3, 33, 129}) {
          gate::Trial trial{.extents = {1, rows, features}, .step = 2, .seed = uint64_t(rows + features)};
          gate::Verdict verdict = gate::judge(kernel->plan, problem, trial);
          EXPECT_TRUE(verdict.ok) << isa.name.str() << " " << codegen::name(strategy).str() << " " << verdict.text;
        }
      }
      gate::Trial tall{.extents = {1, 4096, 40}, .step = 2};
      gate::Verdict verdict = gate::judge(kernel->plan, problem, tall);
      EXPECT_TRUE(verdict.ok) << isa.name.str() << " " << codegen::name(strategy).str() << " " << verdict.text;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Norms, AnySize,
    testing::Values("layer_norm:forward@f32[*x*]", "layer_norm:backward@f32[*x*]", "rms_norm:forward@bf16[*x*]",
                    "rms_norm:backward@bf16[*x*]", "power_norm:forward@f32[*x*]", "power_norm:backward@f32[*x*]",
                    "batch_norm:forward@f32[*x*]", "batch_norm:backward@f32[*x*]",
                    "power_norm_v:backward@f16[*x*]", "power_norm_released:forward@f32[*x*]{heads=1,mask}",
                    "power_norm_released:backward@f32[*x*]{heads=1,mask}"));

class TallTensor : public testing::TestWithParam<const char*> {};

TEST_P(TallTensor, KeepsItsDigitsInTheKernelThatThePackageChooses) {
  const std::string shape = "[150001x6]", text = GetParam();
  const Problem problem = problemOf(text + "[*x6]");
  const std::string bytes = llvm::cantFail(
      codegen::buildPackage(codegen::defaultJobs(problem, llvm::cantFail(codegen::findTarget("host")))));
  host::Context context;
  host::Package package(context, bytes.data(), bytes.size());
  const host::Plan plan(package, text + shape, normc_request{});
  const gate::Verdict verdict = gate::judge(plan.get(), problem, {.extents = {1, 150001, 6}, .step = 2});
  EXPECT_TRUE(verdict.ok) << verdict.text;
}
INSTANTIATE_TEST_SUITE_P(Columns, TallTensor,
                         testing::Values("batch_norm:forward@f32", "batch_norm:backward@f32", "power_norm:backward@f32"));

TEST(LongSums, OfABatchWithAnOutlierKeepTheirDigitsWhateverTheScheduleAddsFirst) {
  struct Case {
    const char* schedule;
    int64_t rows, features;
  };
  for (const Case& c : {Case{"resident,vector=8,rows=1,unroll=1,tile=2,grain=32,stream=0", 40000, 24},
                        Case{"streamed,vector=8,rows=1,unroll=1,tile=2,grain=131,stream=1", 33, 2047},
                        Case{"streamed,vector=8,rows=1,unroll=1,tile=2,grain=131,stream=1", 8192, 24}}) {
    const Problem problem = problemOf("batch_norm:forward@f32[*x" + std::to_string(c.features) + "]");
    auto kernel = compiled(problem, llvm::cantFail(codegen::cpu::parseSchedule(c.schedule)), llvm::cantFail(codegen::cpu::findIsa("x86-64-v3")));
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (normc_plan* plan : {kernel->plan, kernel->large}) {
      if (!plan) continue;
      const gate::Verdict verdict =
          gate::judge(plan, problem, {.extents = {1, c.rows, c.features}, .data = HardInput::OutlierRow, .step = 2});
      EXPECT_TRUE(verdict.ok) << c.schedule << " " << verdict.text;
    }
  }
}

}  // namespace
}  // namespace normc
