// Rows whose rest stays in shared memory: the full gate, thread orders in turn, what is moved, and what is
// found when a wait is left out.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

using Case = SharedMemoryCase;

class EmulatedShared : public testing::TestWithParam<Case> {};

TEST_P(EmulatedShared, PassesTheGateAndReadsOnce) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto kernel = emulated(problem, llvm::cantFail(codegen::cuda::parseSchedule(GetParam().schedule)),
                         archOf(GetParam().arch));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  EXPECT_EQ(kernel->manifest.phases[0].launch->shared, GetParam().shared);
  EXPECT_EQ(kernel->manifest.traffic.reads, problem.entry == Entry::Backward ? 2 : 1);
  EXPECT_FALSE(kernel->manifest.traffic.leastReads) << "it is the least";
  const gate::Verdict inTurns = kernel->judgeInTurns(problem);  // threads share nothing but sums
  ASSERT_TRUE(inTurns.ok) << inTurns.text;
  // Many rows of one task, so that places are used again; each byte comes once, and goes once.
  const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, 19, *problem.features}, .step = 5000});
  ASSERT_TRUE(verdict.ok) << verdict.text;
  const uint64_t tensor = uint64_t(19 * *problem.features * bytes(problem.data));
  uint64_t read = 0, written = 0, copied = 0;
  for (size_t i = 0; i < kernel->launches.size() / 2; ++i)
    for (const char* name : {"x", "dy", "y", "dx"}) {
      const emulator::Traffic t = kernel->launches[i].report.of(name);
      read += t.bytesLoaded, written += t.bytesStored, copied += t.bytesCopied;
    }
  EXPECT_EQ(read, tensor * uint64_t(kernel->manifest.traffic.reads));
  EXPECT_EQ(written, tensor);
  EXPECT_EQ(copied > 0, *problem.features % 2 == 0) << "odd rows are moved by threads";
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedShared,
    testing::Values(
        Case{"Row", "layer_norm:forward@f32[*x768]", "resident,threads=32,team=32,vector=4,tile=1,shared=5",
             5 * 32 * 16},
        Case{"RowOfSm80", "layer_norm:forward@bf16[*x1000]",
             "resident,threads=32,team=32,vector=8,tile=2,shared=2", 2 * 32 * 16, "sm_80"},
        Case{"RowInfer", "rms_norm:infer@bf16[*x1024]",
             "resident,threads=64,team=32,vector=8,tile=1,shared=3", 3 * 64 * 16},
        Case{"RowOf32Bytes", "rms_norm:forward@bf16[*x1040]",
             "resident,threads=32,team=32,vector=16,tile=1,shared=2", 2 * 32 * 32, "sm_100"},
        Case{"Pairs", "layer_norm:forward@f32[*x624]", "resident,threads=64,team=64,vector=2,tile=1,shared=4",
             4 * 64 * 8},
        Case{"OddRow", "layer_norm:forward@bf16[*x1201]",
             "resident,threads=32,team=32,vector=8,tile=1,shared=4", 4 * 32 * 16},
        Case{"Backward", "layer_norm:backward@f32[*x600]",
             "resident,threads=32,team=32,vector=4,tile=1,chunks=3,shared=4", 4 * 32 * (2 * 16 + 2 * 16),
             "sm_80"},
        Case{"BackwardBF16", "layer_norm:backward@bf16[*x1024]",
             "resident,threads=32,team=32,vector=8,tile=1,chunks=2,shared=3", 3 * 32 * (2 * 16 + 2 * 32)},
        Case{"BackwardOf32Bytes", "rms_norm:backward@bf16[*x1536]",
             "resident,threads=32,team=32,vector=16,tile=1,chunks=2,shared=2", 2 * 32 * (2 * 32 + 64),
             "sm_100"},
        Case{"MaskedGroups", "group_norm:backward@f32[*x768]{groups=2,mask}",
             "resident,threads=64,team=32,vector=4,tile=1,chunks=2,shared=2", 2 * 64 * (2 * 16 + 2 * 16)},
        Case{"OverTwoBlocks", "layer_norm:backward@f32[*x1024]",
             "resident,threads=32,team=32,vector=4,tile=1,chunks=2,cluster=2,shared=3",
             3 * 32 * (2 * 16 + 2 * 16)},
        Case{"TileReadAhead", "rms_norm:forward@f32[*x512]",
             "resident,threads=32,team=32,vector=4,tile=2,chunks=2,prefetch=1,shared=2", 2 * 32 * 16},
        Case{"CopiedAhead", "layer_norm:backward@bf16[*x1024]",
             "resident,threads=32,team=32,vector=8,tile=2,chunks=2,prefetch=3,shared=2",
             32 * (3 * (2 + 2) * 2 * 16 + 2 * 2 * 32)}),
    [](const auto& info) { return info.param.name; });

/// More than a block has without asking, in the entry for any alignment too.
TEST(EmulatedSharedRows, MayTakeMoreThan48KiB) {
  const Problem problem = *parseProblem("layer_norm:forward@f32[*x17408]", findNorm);
  const auto schedule =
      llvm::cantFail(codegen::cuda::parseSchedule("resident,threads=256,team=256,vector=4,tile=1,shared=16"));
  auto kernel = emulated(problem, schedule, archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  EXPECT_EQ(kernel->manifest.phases[0].launch->shared, 64 << 10);
  for (int misalign : {0, 1}) {
    const gate::Verdict verdict =
        kernel->judge(problem, {.extents = {1, 3, 17408}, .placement = {.misalign = misalign}});
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}

/// A plan asks for what a launch needs, and a device has the rest of it for static variables.
TEST(EmulatedSharedRows, AreRefusedWhereABlockHasNoRoomForThem) {
  const Problem problem = *parseProblem("layer_norm:forward@f32[*x2048]", findNorm);
  const auto schedule =
      llvm::cantFail(codegen::cuda::parseSchedule("resident,threads=256,team=256,vector=4,tile=1,shared=1"));
  const auto error = [&](const char* arch, int64_t bytes) {
    const Damage larger{.manifest = [&](package::Kernel& k) { k.phases[0].launch->shared = bytes; }};
    return emulated(problem, schedule, archOf(arch), larger)->error;
  };
  const auto refused = [](int64_t bytes) {
    return "asking for " + std::to_string(bytes) + " bytes of shared memory for 'k_apply'";
  };
  constexpr int64_t kSums = 512;
  EXPECT_EQ(error("sm_90", (227 << 10) - kSums), "");
  EXPECT_NE(error("sm_90", 227 << 10).find(refused(227 << 10)), std::string::npos) << "beside its sums";
  EXPECT_EQ(error("sm_86", (99 << 10) - kSums), "");
  EXPECT_NE(error("sm_86", 99 << 10).find(refused(99 << 10)), std::string::npos);
}

/// The tests above prove nothing unless faults are found, as here.
TEST(EmulatedSharedRows, AreARaceWithoutAWait) {
  const Problem problem = *parseProblem("layer_norm:backward@f32[*x512]", findNorm);
  const auto schedule = llvm::cantFail(
      codegen::cuda::parseSchedule("resident,threads=32,team=32,vector=4,tile=1,chunks=1,shared=3"));
  for (bool broken : {false, true}) {
    auto kernel = emulated(problem, schedule, archOf("sm_80"),
                           broken ? replaced("cp\\.async\\.wait_group[^;]*;", "") : Damage());
    ASSERT_TRUE(kernel->plan) << kernel->error;
    const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, 3, 512}});
    EXPECT_EQ(verdict.ok, !broken);
    EXPECT_EQ(verdict.text.find("data race") != std::string::npos, broken) << verdict.text;
  }
}

}  // namespace
}  // namespace normc
