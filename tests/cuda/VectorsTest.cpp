// Scale and bias that stay in shared memory for the rows of a task: the full gate, thread orders in turn, how
// often they are read, and what is found when a barrier is left out.
#include <gtest/gtest.h>

#include <array>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

using Case = SharedMemoryCase;

std::unique_ptr<Emulated> emulatedOn(const char* problem, const char* schedule, const Damage& damage = {}) {
  return emulated(*parseProblem(problem, findNorm), llvm::cantFail(codegen::cuda::parseSchedule(schedule)),
                  archOf("sm_90"), damage);
}

class EmulatedVectors : public testing::TestWithParam<Case> {};

TEST_P(EmulatedVectors, PassTheGateAndComeOnceATask) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto kernel = emulatedOn(GetParam().problem, GetParam().schedule);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const auto& launch = *kernel->manifest.phases[0].launch;
  EXPECT_EQ(launch.shared, GetParam().shared);
  const gate::Verdict inTurns = kernel->judgeInTurns(problem);
  ASSERT_TRUE(inTurns.ok) << inTurns.text;
  const int64_t rows = 23;
  const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, rows, *problem.features}});
  ASSERT_TRUE(verdict.ok) << verdict.text;
  const auto s = llvm::cantFail(codegen::cuda::parseSchedule(GetParam().schedule));
  // Lanes behind the end of a row read something, too.
  const int64_t tasks = kernel->manifest.phases[0].maxChunks,
                lanes = s.team * s.cluster * s.vector * (s.tile + s.shared);
  const bool centered = problem.spec->center != Center::None && problem.entry != Entry::Backward;
  const auto& report = kernel->launches.at(0).report;
  EXPECT_EQ(report.of("scale").bytesLoaded, uint64_t(tasks * lanes * bytes(problem.params)));
  EXPECT_EQ(report.of("bias").bytesLoaded, centered ? report.of("scale").bytesLoaded : 0);
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedVectors,
    testing::Values(
        Case{"Row", "layer_norm:forward@f32[*x512]",
             "resident,threads=64,team=64,vector=4,tile=2,chunks=2,hold=1", 512 * 8},
        Case{"SeveralTeams", "layer_norm:forward@bf16[*x1000]",
             "resident,threads=128,team=32,vector=8,tile=4,rows=2,chunks=3,prefetch=1,hold=1", 1024 * 8},
        Case{"NarrowParams", "layer_norm:infer@bf16[*x1024]{params=bf16}",
             "resident,threads=64,team=64,vector=8,tile=1,chunks=2,hold=1,shared=1", 64 * 16 + 1024 * 4},
        Case{"OverTwoBlocks", "layer_norm:forward@bf16[*x2048]",
             "resident,threads=64,team=64,vector=8,tile=2,chunks=2,cluster=2,prefetch=5,hold=1",
             2 * 64 * 2 * 16 + 1024 * 8},
        Case{"Backward", "rms_norm:backward@bf16[*x640]",
             "resident,threads=64,team=32,vector=8,tile=3,chunks=2,prefetch=2,hold=1",
             64 * 2 * 3 * 2 * 16 + 768 * 4},
        Case{"OfAResidualStream", "rms_norm_residual:forward@f32[*x600]",
             "resident,threads=96,team=96,vector=4,tile=1,chunks=2,hold=1,shared=1", 2 * 96 * 16 + 768 * 4}),
    [](const auto& info) { return info.param.name; });

// A task reads them once, and not for each of its rows.
TEST(EmulatedVectorsOfRows, ComeForEachRowWhereTheyAreNotHeld) {
  const Problem problem = *parseProblem("layer_norm:forward@f32[*x512]", findNorm);
  std::array<uint64_t, 2> loaded{};
  for (int hold : {0, 1}) {
    auto kernel = emulatedOn("layer_norm:forward@f32[*x512]",
                             hold ? "resident,threads=128,team=128,vector=4,tile=1,chunks=1,hold=1"
                                  : "resident,threads=128,team=128,vector=4,tile=1,chunks=1");
    ASSERT_TRUE(kernel->plan) << kernel->error;
    ASSERT_TRUE(kernel->judge(problem, {.extents = {1, 10, 512}}).ok);
    loaded[size_t(hold)] = kernel->launches.at(0).report.of("bias").bytesLoaded;
  }
  EXPECT_EQ(loaded[0], 10u * 512 * 4);
  EXPECT_EQ(loaded[1], 1u * 512 * 4);
}

/// The tests above prove nothing unless faults are found, as here: other teams read what the first has
/// written.
TEST(EmulatedVectorsOfRows, AreARaceWithoutTheBarrierBehindThem) {
  const char *text = "rms_norm:forward@f32[*x128]",
             *schedule = "resident,threads=64,team=32,vector=4,tile=1,chunks=1,hold=1";
  for (bool broken : {false, true}) {
    auto kernel = emulatedOn(text, schedule, broken ? replaced("bar\\.sync[^;]*;", "") : Damage());
    ASSERT_TRUE(kernel->plan) << kernel->error;
    const gate::Verdict verdict = kernel->judge(*parseProblem(text, findNorm), {.extents = {1, 4, 128}});
    EXPECT_EQ(verdict.ok, !broken);
    EXPECT_EQ(verdict.text.find("data race") != std::string::npos, broken) << verdict.text;
  }
}

}  // namespace
}  // namespace normc
