// Rows that cp.async copies ahead to shared memory: the full gate, in three thread orders, and what is moved.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

using Case = SharedMemoryCase;

class EmulatedAhead : public testing::TestWithParam<Case> {};

/// Returns the kernel of a case after the gate passed it in every thread order; null if it did not.
std::unique_ptr<Emulated> passedInEveryOrder(const Case& c, const Problem& problem) {
  auto kernel = emulated(problem, llvm::cantFail(codegen::cuda::parseSchedule(c.schedule)), archOf("sm_90"));
  if (!kernel->plan) return ADD_FAILURE() << kernel->error, nullptr;
  EXPECT_EQ(kernel->manifest.phases[0].launch->shared, c.shared);
  const gate::Verdict verdict = kernel->judgeInEveryOrder(problem);
  if (!verdict.ok) return ADD_FAILURE() << verdict.text, nullptr;
  return kernel;
}

TEST_P(EmulatedAhead, PassesTheGateInEveryThreadOrderAndReadsOnce) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  const auto kernel = passedInEveryOrder(GetParam(), problem);
  ASSERT_TRUE(kernel);
  // Many rows of one task, so that the ring goes round; each byte comes once, by a copy.
  const gate::Trial tall{.extents = {1, 203, *problem.features}, .step = 5000};
  const gate::Verdict verdict = kernel->judge(problem, tall);
  ASSERT_TRUE(verdict.ok) << verdict.text;
  const uint64_t tensor = uint64_t(203 * *problem.features * bytes(problem.data));
  uint64_t copied = 0, expected = 0;
  for (size_t i = 0; i < kernel->launches.size() / 2; ++i)
    for (const char* name : {"x", "dy"}) {
      const emulator::Traffic t = kernel->launches[i].report.of(name);
      EXPECT_EQ(t.bytesLoaded, t.bytesCopied) << name << " is read by loads, too";
      EXPECT_TRUE(t.bytesLoaded == 0 || t.bytesLoaded == tensor) << name << ": " << t.bytesLoaded;
      copied += t.bytesCopied;
    }
  expected = tensor * uint64_t(kernel->manifest.traffic.reads);
  EXPECT_EQ(copied, expected);
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedAhead,
    testing::Values(
        Case{"Row", "layer_norm:forward@f32[*x512]",
             "resident,threads=128,team=128,vector=4,tile=1,chunks=2,prefetch=2", 2 * 128 * 16},
        Case{"RowInfer", "layer_norm:infer@bf16[*x512]",
             "resident,threads=64,team=64,vector=8,tile=1,chunks=2,prefetch=3", 3 * 64 * 16},
        Case{"Backward", "layer_norm:backward@f32[*x512]",
             "resident,threads=64,team=64,vector=4,tile=2,chunks=3,prefetch=2", 2 * 2 * 2 * 64 * 16},
        Case{"BackwardThreeAhead", "layer_norm:backward@bf16[*x512]",
             "resident,threads=32,team=32,vector=8,tile=2,chunks=2,prefetch=4", 4 * 2 * 2 * 32 * 16},
        Case{"BackwardOfLanesBehindTheEnd", "rms_norm:backward@f32[*x300]",
             "resident,threads=64,team=32,vector=4,tile=3,chunks=2,prefetch=2", 2 * 3 * 2 * 64 * 16},
        Case{"RowsTogether", "rms_norm:backward@f32[*x128]",
             "resident,threads=96,team=32,vector=4,tile=1,rows=2,chunks=2,prefetch=3", 3 * 2 * 2 * 96 * 16},
        Case{"SubWarps", "rms_norm:forward@f16[*x64]",
             "resident,threads=64,team=8,vector=8,tile=1,rows=2,chunks=2,prefetch=2", 2 * 2 * 64 * 16},
        Case{"Masked", "layer_norm:backward@f32[*x256]{mask}",
             "resident,threads=64,team=64,vector=4,tile=1,chunks=2,prefetch=2", 2 * 2 * 64 * 16},
        Case{"Groups", "group_norm:backward@f32[*x256]{groups=2}",
             "resident,threads=64,team=32,vector=4,tile=1,chunks=2,prefetch=2", 2 * 2 * 64 * 16},
        Case{"OverTwoBlocks", "layer_norm:backward@f32[*x512]",
             "resident,threads=64,team=64,vector=4,tile=1,chunks=2,prefetch=2,cluster=2", 2 * 2 * 64 * 16},
        Case{"InBulk", "layer_norm:forward@f32[*x512]",
             "resident,threads=128,team=128,vector=4,tile=1,chunks=2,prefetch=5", 2 * 128 * 16},
        Case{"InBulkBackward", "layer_norm:backward@bf16[*x512]",
             "resident,threads=64,team=32,vector=8,tile=2,chunks=2,prefetch=7", 4 * 2 * 2 * 64 * 16},
        Case{"InBulkOfLanesBehindTheEnd", "rms_norm:backward@f32[*x300]",
             "resident,threads=64,team=32,vector=4,tile=3,rows=2,chunks=2,prefetch=6",
             3 * 2 * 3 * 2 * 64 * 16},
        Case{"InBulkOverTwoBlocks", "layer_norm:backward@f32[*x500]",
             "resident,threads=32,team=32,vector=4,tile=2,chunks=2,prefetch=5,cluster=2",
             2 * 2 * 2 * 32 * 16},
        Case{"Hinted", "layer_norm:backward@bf16[*x512]",
             "resident,threads=64,team=64,vector=8,tile=1,chunks=2,prefetch=2,hints=1", 2 * 2 * 64 * 16}),
    [](const auto& info) { return info.param.name; });

/// More than a block has without asking.
TEST(EmulatedAheadShared, MayBeMoreThan48KiB) {
  const Problem problem = *parseProblem("layer_norm:backward@f32[*x4096]", findNorm);
  auto kernel = emulated(problem,
                         llvm::cantFail(codegen::cuda::parseSchedule(
                             "resident,threads=256,team=256,vector=4,tile=4,chunks=2,prefetch=4")),
                         archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  EXPECT_EQ(kernel->manifest.phases[0].launch->shared, 4 * 4 * 2 * 256 * 16);
  const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, 19, 4096}});
  EXPECT_TRUE(verdict.ok) << verdict.text;
}

/// A norm whose backward takes the statistics as constants: a row of it needs no sum, and its teams meet
/// nowhere else.
constexpr const char* kFrozen = R"(norm frozen_ln {
  reduce features
  center current
  moment central
  affine scale, bias
  backward frozen
}
)";

class EmulatedAheadWithoutSums : public testing::TestWithParam<Case> {};

TEST_P(EmulatedAheadWithoutSums, PassesTheGateInEveryThreadOrder) {
  EXPECT_TRUE(passedInEveryOrder(GetParam(), problemOf(kFrozen, GetParam().problem)));
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedAheadWithoutSums,
    testing::Values(
        Case{"OneByOne", ":backward@f32[*x512]",
             "resident,threads=128,team=128,vector=4,tile=1,chunks=2,prefetch=3", 3 * 2 * 128 * 16},
        Case{"InBulkToWarps", ":backward@bf16[*x512]",
             "resident,threads=64,team=32,vector=8,tile=2,chunks=2,prefetch=5", 2 * 2 * 2 * 64 * 16},
        Case{"InBulkToABlock", ":backward@f32[*x512]",
             "resident,threads=128,team=128,vector=4,tile=1,chunks=2,prefetch=6", 3 * 2 * 128 * 16},
        Case{"InBulkToTeamsOfABlock", ":backward@f32[*x256]",
             "resident,threads=128,team=64,vector=4,tile=1,chunks=2,prefetch=7", 4 * 2 * 128 * 16},
        Case{"InBulkOverTwoBlocks", ":backward@f32[*x512]",
             "resident,threads=64,team=64,vector=4,tile=1,chunks=2,prefetch=5,cluster=2", 2 * 2 * 64 * 16}),
    [](const auto& info) { return info.param.name; });

/// Two slabs of a phase walk over rows, the first over those that give the shift.
TEST(EmulatedAheadInTwoSlabs, HasMbarriersOfEachSlab) {
  const Case c{"PreScaled", ":forward@bf16[*x512]{heads=1}",
               "streamed,threads=64,team=64,vector=8,tile=1,rows=1,chunks=4,blocks=1,prefetch=5",
               2 * 64 * 16};
  EXPECT_TRUE(passedInEveryOrder(c, problemOf(kPreScaledNorm, c.problem)));
}

/// The tests above prove nothing unless the emulator finds each missing wait.
TEST(EmulatedAheadWait, IsMissedWhereItIsMissing) {
  const Problem problem = *parseProblem("layer_norm:backward@f32[*x512]", findNorm);
  const auto judged = [&](const Damage& damage) {
    return judgedWith(damage, problem, "resident,threads=64,team=64,vector=4,tile=2,chunks=1,prefetch=3",
                      {.extents = {1, 9, 512}});
  };
  EXPECT_TRUE(judged({}).ok);
  const gate::Verdict none = judged(replaced("cp\\.async\\.wait_group[^;]*;", ""));
  EXPECT_FALSE(none.ok);
  EXPECT_NE(none.text.find("data race"), std::string::npos) << none.text;
  const gate::Verdict late = judged(replaced("(cp\\.async\\.wait_group\\s+)2;", "$013;"));
  EXPECT_FALSE(late.ok) << "it waits for the step before";
  EXPECT_NE(late.text.find("data race"), std::string::npos) << late.text;
}

/// The same for bulk copies: a missing wait, and a piece that the mbarrier does not count.
TEST(EmulatedBulkWait, IsMissedWhereItIsMissing) {
  const Problem problem = *parseProblem("layer_norm:backward@f32[*x512]", findNorm);
  const auto judged = [&](const Damage& damage) {
    return judgedWith(damage, problem, "resident,threads=64,team=64,vector=4,tile=2,chunks=1,prefetch=6",
                      {.extents = {1, 9, 512}});
  };
  EXPECT_TRUE(judged({}).ok);
  const gate::Verdict none =
      judged(replaced("mbarrier\\.try_wait[^;]* (P\\d), [^;]*;", "setp.eq.b32 $1, 0, 0;"));
  EXPECT_FALSE(none.ok);
  EXPECT_NE(none.text.find("data race"), std::string::npos) << none.text;
}

// Steps that are whole, and rows that are left; more chunks than rows, columns behind the last feature, rows
// that a phase reads again from the end.
class EmulatedStreamsAhead : public testing::TestWithParam<Case> {};

TEST_P(EmulatedStreamsAhead, PassTheGateInEveryThreadOrder) {
  EXPECT_TRUE(passedInEveryOrder(GetParam(), *parseProblem(GetParam().problem, findNorm)));
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedStreamsAhead,
    testing::Values(
        Case{"ToRegisters", "power_norm:forward@f32[*x48]",
             "streamed,threads=64,team=8,vector=4,tile=1,rows=2,chunks=3,prefetch=1", 0},
        Case{"ToRegistersBehindTheLastFeature", "power_norm:backward@bf16[*x72]",
             "streamed,threads=64,team=8,vector=4,tile=1,rows=1,chunks=2,prefetch=1", 0},
        Case{"Copies", "power_norm:backward@f32[*x64]",
             "streamed,threads=64,team=8,vector=4,tile=1,rows=2,chunks=2,prefetch=2", 2 * 2 * 2 * 64 * 16},
        Case{"CopiesThatAreReadAgain", "batch_norm:forward@bf16[*x40]",
             "streamed,threads=64,team=4,vector=8,tile=1,rows=1,chunks=4,prefetch=4,hints=2", 4 * 64 * 16},
        Case{"CopiesOfTwoTensors", "batch_norm:backward@f32[*x64]",
             "streamed,threads=32,team=16,vector=4,tile=1,rows=3,chunks=3,prefetch=3", 3 * 3 * 2 * 32 * 16}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace normc
