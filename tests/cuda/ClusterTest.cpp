// Rows and columns that lie over the blocks of a cluster: the full gate, in three thread orders.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

/// Small blocks: the subject is the exchange of sums, not how much a block holds.
struct Case {
  const char *name, *problem, *schedule;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::unique_ptr<Emulated> emulatedCluster(const Problem& problem, const char* schedule) {
  return emulated(problem, llvm::cantFail(codegen::cuda::parseSchedule(schedule)), archOf("sm_90"));
}

class EmulatedCluster : public testing::TestWithParam<Case> {};

TEST_P(EmulatedCluster, PassesTheGateInEveryThreadOrder) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto kernel = emulatedCluster(problem, GetParam().schedule);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict = kernel->judgeInEveryOrder(problem);
  ASSERT_TRUE(verdict.ok) << verdict.text;
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedCluster,
    testing::Values(
        Case{"LayerNorm", "layer_norm:forward@f32[*x1024]",
             "resident,threads=64,team=64,vector=4,tile=2,cluster=2"},
        Case{"LayerNormInfer", "layer_norm:infer@f16[*x1536]",
             "resident,threads=96,team=96,vector=8,tile=1,cluster=2"},
        Case{"LayerNormBackward", "layer_norm:backward@f32[*x1024]",
             "resident,threads=64,team=64,vector=4,tile=2,chunks=3,prefetch=1,cluster=2"},
        Case{"LayerNormMasked", "layer_norm:forward@f32[*x512]{mask}",
             "resident,threads=32,team=32,vector=4,tile=1,cluster=4"},
        Case{"LayerNormBackwardMasked", "layer_norm:backward@bf16[*x1024]{mask}",
             "resident,threads=32,team=32,vector=8,tile=1,chunks=2,cluster=4"},
        Case{"RmsNorm", "rms_norm:forward@bf16[*x1024]",
             "resident,threads=32,team=32,vector=8,tile=1,cluster=4"},
        Case{"RmsNormInfer", "rms_norm:infer@f32[*x1024]",
             "resident,threads=32,team=32,vector=4,tile=2,cluster=4"},
        Case{"RmsNormBackward", "rms_norm:backward@f32[*x512]",
             "resident,threads=32,team=32,vector=4,tile=2,chunks=2,prefetch=1,cluster=2"},
        Case{"OddLength", "layer_norm:forward@f32[*x601]",
             "resident,threads=64,team=64,vector=1,tile=3,cluster=4"},
        Case{"OddLengthBackward", "layer_norm:backward@f32[*x601]",
             "resident,threads=64,team=64,vector=1,tile=5,chunks=2,cluster=2"},
        Case{"EndsInsideABlock", "rms_norm:backward@f32[*x1100]",
             "resident,threads=64,team=64,vector=4,tile=2,chunks=2,cluster=4"},
        Case{"RowsTogether", "layer_norm:forward@f32[*x512]",
             "resident,threads=32,team=32,vector=4,tile=2,rows=3,cluster=2"},
        Case{"TeamsBelowEachOther", "layer_norm:backward@f32[*x512]",
             "resident,threads=96,team=32,vector=4,tile=2,rows=2,chunks=2,cluster=2"},
        Case{"GroupNorm", "group_norm:forward@f32[*x1024]{groups=2}",
             "resident,threads=64,team=32,vector=4,tile=2,cluster=2"},
        Case{"GroupNormBackward", "group_norm:backward@f32[*x1024]{groups=2}",
             "resident,threads=128,team=32,vector=4,tile=2,chunks=2,cluster=2"},
        Case{"ReleasedPowerNorm", "power_norm_released:forward@f32[*x512]{heads=2,mask}",
             "streamed,threads=64,team=32,vector=4,tile=1,chunks=3,cluster=2"},
        Case{"ReleasedPowerNormBackward", "power_norm_released:backward@f32[*x512]{heads=2,mask}",
             "streamed,threads=64,team=32,vector=4,tile=1,chunks=3,cluster=2"},
        // Columns: with rows that are held and not, fewer than blocks, more spans than blocks and fewer.
        Case{"BatchNorm", "batch_norm:forward@f32[*x64]",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,cluster=2"},
        Case{"BatchNormBackward", "batch_norm:backward@f32[*x64]",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,cluster=4"},
        Case{"BatchNormBF16", "batch_norm:forward@bf16[*x64]",
             "resident,threads=32,team=8,vector=8,tile=1,rows=1,hold=1,cluster=8"},
        Case{"BatchNormBackwardBF16", "batch_norm:backward@bf16[*x64]",
             "resident,threads=64,team=16,vector=4,tile=1,rows=2,hold=1,cluster=4"},
        Case{"BatchNormMasked", "batch_norm:forward@f32[*x48]{mask}",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,cluster=4"},
        Case{"BatchNormBackwardMasked", "batch_norm:backward@f32[*x48]{mask}",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,cluster=4"},
        Case{"BatchNormOfSegments", "batch_norm:forward@f32[*x*x32]",
             "resident,threads=64,team=4,vector=4,tile=1,rows=1,hold=3,cluster=2"},
        Case{"BatchNormOfOddLength", "batch_norm:forward@f32[*x37]",
             "resident,threads=64,team=8,vector=1,tile=1,cluster=2"},
        Case{"BatchNormOfOneSpanABlock", "batch_norm:forward@f32[*x128]",
             "resident,threads=32,team=32,vector=4,tile=1,rows=2,hold=4,cluster=4"},
        Case{"PowerNormV", "power_norm_v:forward@f32[*x64]",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,cluster=4"},
        Case{"PowerNormVBackward", "power_norm_v:backward@bf16[*x64]",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,cluster=4"},
        Case{"InstanceNorm", "instance_norm:forward@f32[*x*x64]",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,chunks=2,cluster=4"},
        Case{"InstanceNormBackward", "instance_norm:backward@f32[*x*x64]",
             "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,chunks=2,cluster=2"},
        Case{"InstanceNormMasked", "instance_norm:forward@bf16[*x*x64]{mask}",
             "resident,threads=64,team=8,vector=8,tile=1,rows=1,hold=2,chunks=2,cluster=2"}),
    [](const auto& info) { return info.param.name; });

/// Long rows take long here: few of them, with and without the alignment that accesses of 16 bytes need.
class EmulatedLargeCluster : public testing::TestWithParam<Case> {};

TEST_P(EmulatedLargeCluster, IsRightInEveryThreadOrder) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto kernel = GetParam().schedule ? emulatedCluster(problem, GetParam().schedule)
                                    : emulated(problem, defaultOf(problem, archOf("sm_90")), archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  using emulator::Order;
  for (Order order : {Order::Ascending, Order::Random})  // and each time another one
    for (int64_t misalign : {0, 1}) {
      kernel->driver->options.order = order;
      const gate::Trial trial{.extents = {1, misalign ? 2 : 5, *problem.features},
                              .data = HardInput::Mean1000,
                              .placement = {.misalign = misalign, .inPlace = order == Order::Random}};
      const gate::Verdict verdict = kernel->judge(problem, trial);
      EXPECT_TRUE(verdict.ok) << verdict.text;
    }
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedLargeCluster,
    testing::Values(Case{"Eight", "layer_norm:forward@f32[*x2048]",
                         "resident,threads=64,team=64,vector=4,tile=1,cluster=8"},
                    Case{"SixteenWhoseLanesReadTheParts", "layer_norm:forward@bf16[*x12288]",
                         "resident,threads=96,team=96,vector=8,tile=1,cluster=16"},
                    Case{"PartsThatFillNoWarp", "rms_norm:backward@f32[*x5000]",
                         "resident,threads=160,team=160,vector=4,tile=1,chunks=2,cluster=8"},
                    Case{"DefaultOf16K", "layer_norm:backward@bf16[*x16384]", nullptr},
                    Case{"DefaultOf64K", "layer_norm:forward@bf16[*x65536]", nullptr},
                    Case{"DefaultOfAnOddLength", "layer_norm:forward@f32[*x20001]", nullptr}),
    [](const auto& info) { return info.param.name; });

/// A block that sends before the others are known to be there.
TEST(EmulatedClusterMeeting, WithoutAWaitIsFound) {
  const Problem problem = *parseProblem("layer_norm:forward@f32[*x1024]", findNorm);
  const auto judged = [&](const Damage& damage) {
    return judgedWith(damage, problem, "resident,threads=64,team=64,vector=4,tile=2,chunks=2,cluster=2",
                      {.extents = {1, 5, 1024}})
        .text;
  };
  EXPECT_EQ(judged({}), "");
  const std::string text = judged(replaced("barrier\\.cluster\\.wait[^;]*;", ""));
  EXPECT_NE(text.find("uses the mbarrier at @k_apply_meetings + 0 of block (1, 0, 0)"), text.npos) << text;
  EXPECT_NE(text.find("that another thread has initialised; nothing orders the two"), text.npos) << text;
}

}  // namespace
}  // namespace normc
