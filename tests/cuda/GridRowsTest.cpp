// Rows that lie over blocks of the grid: the full gate, thread orders in turn, what is moved, and what is
// found when a barrier is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

using emulator::Order;

struct Case {
  const char *name, *problem, *schedule;
  const char* arch = "sm_80";
  int64_t warps = 0;  ///< of the blocks of a row, if each reads 64 elements of it to choose a shift
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

codegen::cuda::Schedule parsed(const char* text) {
  return llvm::cantFail(codegen::cuda::parseSchedule(text));
}

class EmulatedGridRows : public testing::TestWithParam<Case> {};

TEST_P(EmulatedGridRows, PassTheGateAndAreReadOnce) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  const auto schedule = parsed(GetParam().schedule);
  auto kernel = emulated(problem, schedule, archOf(GetParam().arch));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  EXPECT_EQ(kernel->manifest.phases[0].launch->cooperative, schedule.grid);
  int n = 0;
  for (const gate::Trial& trial : gate::standardTrials(problem, *problem.features)) {
    kernel->driver->options.order = std::array{Order::Ascending, Order::Descending, Order::Random}[n++ % 3];
    const gate::Verdict inOrder = kernel->judge(problem, trial);
    ASSERT_TRUE(inOrder.ok) << inOrder.text;
  }
  // Many rows of one task, so that places of parts are used again.
  const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, 17, *problem.features}, .step = 5000});
  ASSERT_TRUE(verdict.ok) << verdict.text;
  const uint64_t tensor = uint64_t(17 * *problem.features * bytes(problem.data));
  uint64_t read = 0, written = 0;
  for (size_t i = 0; i < kernel->launches.size() / 2; ++i)
    for (const char* name : {"x", "dy", "y", "dx"}) {
      const emulator::Traffic t = kernel->launches[i].report.of(name);
      read += t.bytesLoaded, written += t.bytesStored;
    }
  EXPECT_EQ(kernel->manifest.traffic.reads, problem.entry == Entry::Backward ? 2 : 1);
  const uint64_t samples = uint64_t(17 * GetParam().warps * 64 * bytes(problem.data));
  EXPECT_EQ(read, tensor * uint64_t(kernel->manifest.traffic.reads) + samples);
  EXPECT_EQ(written, tensor);
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedGridRows,
    testing::Values(Case{"LayerNorm", "layer_norm:forward@f32[*x768]",
                         "resident,threads=32,team=32,vector=4,tile=2,chunks=2,blocks=1,grid=3", "sm_80",
                         /*warps=*/3},
                    Case{"LayerNormBF16", "layer_norm:forward@bf16[*x1000]",
                         "resident,threads=64,team=64,vector=8,tile=1,chunks=2,blocks=1,grid=2", "sm_90",
                         /*warps=*/2 * 2},
                    Case{"OddRow", "layer_norm:forward@bf16[*x701]",
                         "resident,threads=32,team=32,vector=8,tile=1,chunks=2,blocks=1,grid=3", "sm_80",
                         /*warps=*/3},
                    Case{"Backward", "layer_norm:backward@f32[*x500]",
                         "resident,threads=32,team=32,vector=4,tile=2,chunks=2,blocks=1,grid=2"},
                    Case{"BackwardBF16Shared", "layer_norm:backward@bf16[*x1536]",
                         "resident,threads=32,team=32,vector=8,tile=1,chunks=2,blocks=1,grid=3,shared=1"},
                    Case{"BackwardCopiedAhead", "rms_norm:backward@f32[*x384]",
                         "resident,threads=32,team=32,vector=4,tile=1,chunks=2,blocks=1,prefetch=2,grid=3"},
                    Case{"InferShared", "rms_norm:infer@bf16[*x1536]",
                         "resident,threads=32,team=32,vector=8,tile=1,chunks=3,blocks=1,grid=2,shared=2"},
                    Case{"TwoRowsEach", "rms_norm:forward@f32[*x512]",
                         "resident,threads=64,team=32,vector=4,tile=2,rows=2,chunks=1,blocks=1,grid=2"},
                    Case{"MaskedGroups", "group_norm:backward@f32[*x512]{groups=2,mask}",
                         "resident,threads=64,team=32,vector=4,tile=1,chunks=2,blocks=1,grid=2"}),
    [](const auto& info) { return info.param.name; });

/// A warp adds more parts than it has lanes.
TEST(EmulatedGridRowsOfManyBlocks, AreAdded) {
  const Problem problem = *parseProblem("rms_norm:infer@f32[*x4224]", findNorm);
  auto kernel =
      emulated(problem, parsed("resident,threads=32,team=32,vector=4,tile=1,chunks=1,blocks=1,grid=33"),
               archOf("sm_80"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, 3, 4224}});
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

/// Returns the verdict on LayerNorm if no block waits at the n-th grid barrier of a function. -1: all wait.
std::string verdictWithoutWait(const char* text, int n) {
  const Problem problem = *parseProblem(text, findNorm);
  const auto schedule = parsed("resident,threads=32,team=32,vector=4,tile=2,chunks=1,blocks=1,grid=2");
  auto kernel = emulated(problem, schedule, archOf("sm_80"), withoutWait(n));
  if (!kernel->plan) return kernel->error;
  return kernel->judge(problem, {.extents = {1, 5, *problem.features}, .placement = {.inPlace = true}}).text;
}

TEST(EmulatedGridRowsMeeting, WithoutAWaitIsFound) {
  const char *const forward = "layer_norm:forward@f32[*x512]", *const backward =
                                                                   "layer_norm:backward@f32[*x512]";
  EXPECT_EQ(verdictWithoutWait(forward, -1), "");
  EXPECT_EQ(verdictWithoutWait(backward, -1), "");
  const auto found = [](const std::string& text) {
    return text.find("uninitialised memory: @k_apply") != std::string::npos ||
           text.find("data race: @k_apply") != std::string::npos;
  };
  EXPECT_TRUE(found(verdictWithoutWait(forward, 0))) << "both moments; the shift takes no meeting";
  EXPECT_TRUE(found(verdictWithoutWait(backward, 1)))
      << "the first is behind clearing partials, and others follow";
}

/// Each of two phases counts its barriers from one.
TEST(EmulatedGridRowsOfTwoPhases, MeetAtWordsOfTheirOwn) {
  const Problem problem = problemOf(kPreScaledNorm, ":forward@f32[*x512]{heads=2}");
  auto kernel =
      emulated(problem, parsed("streamed,threads=64,team=32,vector=4,tile=1,rows=1,chunks=4,blocks=1,grid=2"),
               archOf("sm_80"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  EXPECT_EQ(std::ranges::count_if(kernel->manifest.operands, &package::Operand::zeroed), 2);
  const gate::Verdict verdict = kernel->judgeInEveryOrder(problem);
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

/// A phase that has a block without rows has none that the block could wait for, nor words for it.
TEST(EmulatedGridRowsOfNoRows, DoNotMeet) {
  const Problem problem = *parseProblem("power_norm_released:backward@f32[*x512]{heads=2}", findNorm);
  auto kernel =
      emulated(problem, parsed("streamed,threads=64,team=32,vector=4,tile=1,rows=1,chunks=4,blocks=1,grid=2"),
               archOf("sm_80"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const int64_t rows : {0, 1, 9}) {
    const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, rows, 512}});
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

}  // namespace
}  // namespace normc
