// Folds that the threads of a block divide: the full gate in three thread orders, few trips to memory, and
// the faults that are found if a barrier is left out.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

/// Small blocks, and so many tasks that threads have several chunks, no chunk, and chunks beyond the last.
struct Case {
  const char *name, *problem, *schedule;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

codegen::cuda::Schedule parsed(const char* text) {
  return llvm::cantFail(codegen::cuda::parseSchedule(text));
}

class EmulatedFolds : public testing::TestWithParam<Case> {};

TEST_P(EmulatedFolds, PassTheGateInEveryThreadOrder) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto kernel = emulated(problem, parsed(GetParam().schedule), archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict = kernel->judgeInEveryOrder(problem);
  EXPECT_TRUE(verdict.ok) << verdict.text;
}
INSTANTIATE_TEST_SUITE_P(Cuda, EmulatedFolds,
                         testing::Values(Case{"OneSum", "rms_norm:backward@f32[*x40]",
                                              "resident,threads=64,team=8,vector=4,tile=2,rows=1,chunks=128"},
                                         Case{"TwoSums", "layer_norm:backward@bf16[*x33]",
                                              "resident,threads=64,team=8,vector=1,tile=5,rows=1,chunks=70"},
                                         Case{"Moments", "batch_norm:forward@f32[*x36]",
                                              "streamed,threads=64,team=8,vector=4,tile=1,rows=1,chunks=100"},
                                         Case{"MomentsOfMaskedRows", "batch_norm:forward@f32[*x32]{mask}",
                                              "streamed,threads=64,team=8,vector=4,tile=1,rows=1,chunks=20"},
                                         Case{
                                             "State", "power_norm:backward@f32[*x64]",
                                             "streamed,threads=64,team=8,vector=4,tile=1,rows=1,chunks=129"}),
                         [](const auto& info) { return info.param.name; });

TEST(EmulatedFolds, WithoutTheBarrierBeforePartsAreMergedAreARace) {
  const Problem problem = *parseProblem("rms_norm:backward@f32[*x40]", findNorm);
  auto kernel = emulated(problem, parsed("resident,threads=64,team=8,vector=4,tile=2,rows=1,chunks=16"),
                         archOf("sm_90"), replacedOnce("finish", "bar\\.sync[^;]*;", ""));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  EXPECT_FALSE(kernel->judgeInEveryOrder(problem).ok);
}

// A chain of 264 loads and additions took 12 us of a backward; the goal is a dozen trips to memory.
TEST(EmulatedFolds, TakeADozenTripsToMemoryAtMost) {
  for (const char* text : {"layer_norm:backward@bf16[*x4096]", "batch_norm:forward@bf16[*x1024]"}) {
    const Problem problem = *parseProblem(text, findNorm);
    const codegen::cuda::Arch arch = archOf("sm_90");
    const auto schedule = defaultOf(problem, arch);
    auto kernel = emulated(problem, schedule, arch);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    const auto& phases = kernel->manifest.phases;
    const auto phase =
        std::ranges::find_if(phases, [](const auto& p) { return p.role == "finish" || p.role == "combine"; });
    ASSERT_NE(phase, phases.end());
    const int64_t slices = phase->launch->threads / 32, together = 8;
    EXPECT_LE((schedule.chunks + slices * together - 1) / (slices * together), 12) << text;
    EXPECT_EQ(phase->multiple, 32) << text << ": features of a block";
  }
}

}  // namespace
}  // namespace normc
