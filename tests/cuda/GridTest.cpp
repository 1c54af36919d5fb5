// Columns that lie over blocks of the grid: the full gate in three thread orders, on devices with clusters
// and without, and the faults that are found if a barrier is left out.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

using emulator::Order;

/// Small blocks: the subject is the exchange of sums, not how much a block holds.
struct Case {
  const char *name, *problem, *arch, *schedule;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

codegen::cuda::Schedule parsed(const char* text) {
  return llvm::cantFail(codegen::cuda::parseSchedule(text));
}

class EmulatedGrid : public testing::TestWithParam<Case> {};

TEST_P(EmulatedGrid, PassesTheGateInEveryThreadOrder) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto kernel = emulated(problem, parsed(GetParam().schedule), archOf(GetParam().arch));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict = kernel->judgeInEveryOrder(problem);
  ASSERT_TRUE(verdict.ok) << verdict.text;
}
INSTANTIATE_TEST_SUITE_P(Cuda, EmulatedGrid,
                         testing::Values(
                             // Rows that are held and not, fewer rows than blocks, more spans than blocks and
                             // fewer, tiles that a task walks through.
                             Case{"BatchNorm", "batch_norm:forward@f32[*x64]", "sm_90",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=3"},
                             Case{"BatchNormOfSm80", "batch_norm:forward@f32[*x64]", "sm_80",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=5"},
                             Case{"BatchNormBackward", "batch_norm:backward@f32[*x64]", "sm_90",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=4"},
                             Case{"BatchNormBackwardOfSm80", "batch_norm:backward@f32[*x64]", "sm_80",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=1,hold=2,grid=6"},
                             Case{"BatchNormBF16", "batch_norm:forward@bf16[*x64]", "sm_90",
                                  "resident,threads=32,team=8,vector=8,tile=1,rows=1,hold=1,grid=9"},
                             Case{"BatchNormBF16OfSm80", "batch_norm:forward@bf16[*x64]", "sm_80",
                                  "resident,threads=64,team=8,vector=8,tile=1,rows=2,hold=1,grid=2"},
                             Case{"BatchNormBackwardBF16", "batch_norm:backward@bf16[*x64]", "sm_90",
                                  "resident,threads=64,team=16,vector=4,tile=1,rows=2,hold=1,grid=4"},
                             Case{"BatchNormBackwardBF16OfSm80", "batch_norm:backward@bf16[*x64]", "sm_80",
                                  "resident,threads=64,team=8,vector=8,tile=1,rows=1,hold=2,grid=3"},
                             Case{"BatchNormMasked", "batch_norm:forward@f32[*x48]{mask}", "sm_90",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=4"},
                             Case{"BatchNormBackwardMasked", "batch_norm:backward@f32[*x48]{mask}", "sm_80",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=4"},
                             Case{"BatchNormOfSegments", "batch_norm:forward@f32[*x*x32]", "sm_90",
                                  "resident,threads=64,team=4,vector=4,tile=1,rows=1,hold=3,grid=3"},
                             Case{"BatchNormOfOddLength", "batch_norm:forward@f32[*x37]", "sm_80",
                                  "resident,threads=64,team=8,vector=1,tile=1,grid=3"},
                             Case{"BatchNormOfOneSpanABlock", "batch_norm:forward@f32[*x128]", "sm_90",
                                  "resident,threads=32,team=32,vector=4,tile=1,rows=2,hold=4,grid=4"},
                             Case{"BatchNormThatHoldsNothing", "batch_norm:forward@f32[*x32]", "sm_80",
                                  "resident,threads=32,team=8,vector=4,tile=1,rows=2,grid=4"},
                             Case{"BatchNormOfTilesInTurn", "batch_norm:forward@f32[*x96]", "sm_90",
                                  "resident,threads=64,team=4,vector=4,tile=1,rows=1,chunks=2,hold=2,grid=3"},
                             Case{"BatchNormOfTilesInTurnBackward", "batch_norm:backward@bf16[*x96]", "sm_80",
                                  "resident,threads=64,team=4,vector=4,tile=1,rows=1,chunks=1,hold=2,grid=5"},
                             Case{"BatchNormOfManyBlocks", "batch_norm:backward@f32[*x32]", "sm_90",
                                  "resident,threads=32,team=8,vector=4,tile=1,rows=1,hold=1,grid=37"},
                             Case{"PowerNormV", "power_norm_v:forward@f32[*x64]", "sm_90",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=4"},
                             Case{"PowerNormVOfSm80", "power_norm_v:forward@bf16[*x64]", "sm_80",
                                  "resident,threads=64,team=8,vector=8,tile=1,rows=2,hold=1,grid=3"},
                             Case{"PowerNormVBackward", "power_norm_v:backward@bf16[*x64]", "sm_90",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=4"},
                             Case{"PowerNormVBackwardOfSm80", "power_norm_v:backward@f32[*x64]", "sm_80",
                                  "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=1,grid=2"}),
                         [](const auto& info) { return info.param.name; });

//===-- What is found -----------------------------------------------------------------===//

constexpr const char* kSmall = "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=3";

/// The verdict on BatchNorm with something broken.
std::string verdictOf(const char* text, const Damage& damage) {
  const Problem problem = *parseProblem(text, findNorm);
  auto kernel = emulated(problem, parsed(kSmall), archOf("sm_90"), damage);
  if (!kernel->plan) return kernel->error;
  return kernel->judge(problem, {.extents = {1, 100, *problem.features}, .placement = {.inPlace = true}})
      .text;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

constexpr const char *kForward = "batch_norm:forward@f32[*x64]", *kBackward = "batch_norm:backward@f32[*x64]";

TEST(EmulatedMeeting, IsThereWhereItIsNeeded) {
  EXPECT_EQ(verdictOf(kForward, {}), "");
  EXPECT_EQ(verdictOf(kBackward, {}), "");
}

TEST(EmulatedMeeting, OfSumsWithoutAWaitIsFound) {
  for (const char* problem : {kForward, kBackward}) {
    const std::string text = verdictOf(problem, withoutWait(0));
    EXPECT_TRUE(has(text, "uninitialised memory: @k_apply") || has(text, "data race: @k_apply")) << text;
  }
}

TEST(EmulatedMeeting, BeforeStoresOfStateWithoutAWaitIsARace) {
  const std::string text = verdictOf(kForward, withoutWait(1));
  EXPECT_TRUE(has(text, "data race: @k_apply")) << text;
  EXPECT_TRUE(has(text, "state_in")) << text;
}

TEST(EmulatedMeeting, WithoutOrderIsARace) {
  const std::string text = verdictOf(kBackward, replaced("st\\.release", "st.relaxed"));
  EXPECT_TRUE(has(text, "data race: @k_apply")) << text;
}

TEST(EmulatedMeeting, OfBlocksThatAreNotThereAtOnceIsADeadlock) {
  // The same number of blocks, but launched as separate tasks.
  const std::string text = verdictOf(kBackward, {.manifest = [](package::Kernel& kernel) {
                                       package::Phase& phase = kernel.phases[0];
                                       phase.launch->least = phase.launch->cooperative * 2;
                                       phase.launch->cooperative = 1;
                                     }});
  EXPECT_TRUE(has(text, "a barrier of all blocks needs a cooperative launch")) << text;
}

TEST(EmulatedMeeting, OverMemoryThatIsNotClearedIsFound) {
  const std::string text = verdictOf(kBackward, {.manifest = [](package::Kernel& kernel) {
                                       for (package::Operand& operand : kernel.operands)
                                         if (operand.zeroed()) operand.access = package::Access::Both;
                                     }});
  EXPECT_TRUE(has(text, "uninitialised") && has(text, "ld.acquire.gpu.b64")) << text;
}

}  // namespace
}  // namespace normc
