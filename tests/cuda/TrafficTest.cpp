// Bytes that kernels move, counted while they run, against the plan: the number of
// times that a kernel goes through memory is its price, and the width of an access
// is what makes a transfer cheap.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

/// Bytes between X-sized tensors and threads, and those of them by accesses of less than 16 bytes.
struct Moved {
  uint64_t read = 0, written = 0, narrow = 0;
};

/// The traffic of one call: the gate makes two equal ones.
Moved movedBy(const std::vector<emulator::EmulatedDriver::Launched>& launches,
              const std::string& phase = "") {
  Moved moved;
  for (size_t i = 0; i < launches.size() / 2; ++i) {
    if (!phase.empty() && launches[i].function != "k_" + phase) continue;
    for (const char* tensor : {"x", "dy", "y", "dx"}) {
      const emulator::Traffic t = launches[i].report.of(tensor);
      moved.read += t.bytesLoaded, moved.written += t.bytesStored;
      for (int i = 0; i < 4; ++i) moved.narrow += (t.loads[i] + t.stores[i]) << i;
    }
  }
  return moved;
}

/// Returns the reads that the manifest states for columns of so many rows, in rows.
uint64_t plannedReads(const package::Traffic& traffic, int64_t rows) {
  const int64_t held = std::min(rows, traffic.heldRows);
  return uint64_t(traffic.leastReads.value_or(traffic.reads) * held + traffic.reads * (rows - held));
}

struct Case {
  const char *name, *problem, *arch, *schedule;  ///< no schedule: the default
  int64_t rows, reads, writes;                   ///< transfers, as docs/design.md has them
  int64_t heads = 0;  ///< rows that tasks read once more beforehand, to choose a shift
  int64_t warps = 0;  ///< of the blocks that share a row: each reads 64 elements of it for the same purpose
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EmulatedTraffic : public testing::TestWithParam<Case> {};

TEST_P(EmulatedTraffic, IsWhatWasPlanned) {
  const Case& c = GetParam();
  const Problem problem = *parseProblem(c.problem, findNorm);
  const auto arch = archOf(c.arch);
  const auto schedule =
      c.schedule ? llvm::cantFail(codegen::cuda::parseSchedule(c.schedule)) : defaultOf(problem, arch);
  auto kernel = emulated(problem, schedule, arch);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Trial trial{.extents = {1, c.rows, *problem.features}, .step = 5000};
  const gate::Verdict verdict = kernel->judge(problem, trial);
  ASSERT_TRUE(verdict.ok) << verdict.text;
  const package::Traffic& planned = kernel->manifest.traffic;
  EXPECT_EQ(plannedReads(planned, c.rows), uint64_t(c.reads * c.rows));
  EXPECT_EQ(planned.leastReads.value_or(planned.reads), c.reads);
  EXPECT_EQ(planned.writes, c.writes);
  const Moved moved = movedBy(kernel->launches);
  const uint64_t tensor = uint64_t(trial.extents.rows * trial.extents.features * bytes(problem.data));
  const uint64_t samples = uint64_t(c.rows * c.warps * 64 * bytes(problem.data));
  EXPECT_EQ(moved.read, c.reads * tensor + c.heads * tensor / c.rows + samples)
      << double(moved.read) / double(tensor) << " reads; " << schedule.text();
  EXPECT_EQ(moved.written, c.writes * tensor)
      << double(moved.written) / double(tensor) << " writes; " << schedule.text();
  EXPECT_EQ(moved.narrow, samples) << schedule.text();
  EXPECT_EQ(schedule.vector * bytes(problem.data), arch.accessBytes);
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedTraffic,
    testing::Values(
        Case{"LayerNorm", "layer_norm:forward@f32[*x1024]", "sm_90", nullptr, 64, 1, 1},
        Case{"LayerNormBackward", "layer_norm:backward@f32[*x1024]", "sm_90", nullptr, 64, 2, 1},
        Case{"LayerNormBF16", "layer_norm:forward@bf16[*x4096]", "sm_80", nullptr, 32, 1, 1},
        Case{"LayerNormBackwardBF16", "layer_norm:backward@bf16[*x4096]", "sm_90", nullptr, 32, 2, 1},
        Case{"LayerNormInfer", "layer_norm:infer@f16[*x768]", "sm_90", nullptr, 64, 1, 1},
        Case{"LayerNorm32Bytes", "layer_norm:forward@bf16[*x2048]", "sm_100", nullptr, 64, 1, 1},
        Case{"RmsNorm", "rms_norm:forward@bf16[*x128]", "sm_90", nullptr, 256, 1, 1},
        Case{"RmsNormBackward", "rms_norm:backward@f32[*x5120]", "sm_90", nullptr, 8, 2, 1},
        Case{"LayerNormOverTwoBlocks", "layer_norm:forward@f32[*x16384]", "sm_90", nullptr, 6, 1, 1},
        Case{"LayerNormOverFourBlocks", "layer_norm:forward@bf16[*x32768]", "sm_100", nullptr, 4, 1, 1,
             /*heads=*/0, /*warps=*/4 * 8},
        Case{"LayerNormOverFourBlocksBackward", "layer_norm:backward@f32[*x16384]", "sm_100", nullptr, 6, 2,
             1},
        Case{"RmsNormOverEightBlocksBackward", "rms_norm:backward@bf16[*x32768]", "sm_90", nullptr, 4, 2, 1},
        Case{"RmsNormOverSixteenBlocksInfer", "rms_norm:infer@bf16[*x131072]", "sm_90", nullptr, 2, 1, 1},
        Case{"GroupNorm", "group_norm:forward@f32[*x1024]{groups=4}", "sm_90", nullptr, 64, 1, 1},
        Case{"GroupNormBackward", "group_norm:backward@f32[*x1024]{groups=4}", "sm_90", nullptr, 64, 2, 1},
        Case{"PowerNorm", "power_norm:forward@f32[*x1024]", "sm_90", nullptr, 256, 1, 1},
        Case{"PowerNormBackward", "power_norm:backward@f32[*x1024]", "sm_90", nullptr, 256, 2, 1},
        Case{"PowerNormBF16", "power_norm:forward@bf16[*x512]", "sm_90", nullptr, 512, 1, 1},
        Case{"PowerNormBackward32Bytes", "power_norm:backward@f32[*x1024]", "sm_100", nullptr, 256, 2, 1},
        Case{"ReleasedPowerNorm", "power_norm_released:forward@f32[*x256]{heads=4}", "sm_90", nullptr, 256, 1,
             1},
        Case{"ReleasedPowerNormBackward", "power_norm_released:backward@f32[*x256]{heads=4}", "sm_90",
             nullptr, 256, 2, 1},
        Case{"BatchNorm", "batch_norm:forward@f32[*x1024]", "sm_90", nullptr, 256, 2, 1, /*heads=*/8},
        Case{"BatchNormBackward", "batch_norm:backward@f32[*x1024]", "sm_90", nullptr, 256, 4, 1},
        Case{"InstanceNorm", "instance_norm:forward@f32[*x*x64]", "sm_90", nullptr, 700, 1, 1, /*heads=*/8},
        Case{"InstanceNormBackward", "instance_norm:backward@f32[*x*x64]", "sm_90", nullptr, 300, 2, 1},
        Case{"InstanceNormBF16", "instance_norm:forward@bf16[*x*x64]", "sm_90", nullptr, 250, 1, 1,
             /*heads=*/8},
        Case{"BatchNormOfFewRows", "batch_norm:forward@f32[*x64]", "sm_90",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2", 250, 1, 1, /*heads=*/8},
        Case{"BatchNormOfFewRowsBackward", "batch_norm:backward@f32[*x64]", "sm_90",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2", 256, 2, 1},
        Case{"BatchNormOverACluster", "batch_norm:forward@f32[*x64]", "sm_90",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2,cluster=8", 2000, 1, 1,
             /*heads=*/8 * 8},
        Case{"BatchNormOverAClusterBackward", "batch_norm:backward@f32[*x64]", "sm_90",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2,cluster=8", 2048, 2, 1},
        Case{"PowerNormVOverAClusterBackward", "power_norm_v:backward@f32[*x32]", "sm_90",
             "resident,threads=64,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2,cluster=16", 1023, 2, 1},
        Case{"InstanceNormOverACluster", "instance_norm:forward@f32[*x*x64]", "sm_90",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=1,hold=4,cluster=4", 2047, 1, 1,
             /*heads=*/4 * 8},
        Case{"BatchNormOverAGrid", "batch_norm:forward@f32[*x64]", "sm_80",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2,grid=6", 1500, 1, 1,
             /*heads=*/6 * 8},
        Case{"BatchNormOverAGridBackward", "batch_norm:backward@f32[*x64]", "sm_90",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2,grid=6", 1536, 2, 1},
        Case{"BatchNormOverAGridBF16", "batch_norm:forward@bf16[*x64]", "sm_90",
             "resident,threads=256,team=8,vector=8,tile=1,rows=2,blocks=1,hold=3,grid=7", 1344, 1, 1,
             /*heads=*/7 * 8},
        Case{"PowerNormVOverAGrid", "power_norm_v:forward@bf16[*x64]", "sm_80",
             "resident,threads=128,team=8,vector=8,tile=1,rows=2,blocks=1,hold=3,grid=7", 671, 1, 1},
        Case{"PowerNormVOverAGridBackward", "power_norm_v:backward@f32[*x32]", "sm_80",
             "resident,threads=64,team=8,vector=4,tile=1,rows=4,blocks=1,hold=2,grid=20", 1280, 2, 1},
        Case{"BatchNormInfer", "batch_norm:infer@bf16[*x1024]", "sm_90", nullptr, 256, 1, 1}),
    [](const auto& info) { return info.param.name; });

Moved moves(const char* text, int64_t rows, int64_t step, const std::string& phase = "") {
  const Problem problem = *parseProblem(text, findNorm);
  const auto arch = archOf("sm_90");
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  EXPECT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict =
      kernel->judge(problem, {.extents = {1, rows, *problem.features}, .step = step});
  EXPECT_TRUE(verdict.ok) << verdict.text;
  return movedBy(kernel->launches, phase);
}

/// Schedules that read again, and warmup: the manifest has the actual traffic in addition to the planned one.
struct Again {
  const char *name, *problem, *schedule;
  int64_t segments, rows, reads, least;
  int64_t step = 5000;
  /// Bytes that are read beforehand to choose a shift, by each thread: an access at the beginning of rows and
  /// one in their middle, eight elements of a segment, eight rows of a column. Caches hold them.
  int64_t probed = 0;
};
void PrintTo(const Again& c, std::ostream* out) { *out << c.name; }

class EmulatedAgain : public testing::TestWithParam<Again> {};

TEST_P(EmulatedAgain, IsReadAsOftenAsTheManifestSays) {
  const Again& c = GetParam();
  const Problem problem = *parseProblem(c.problem, findNorm);
  auto kernel = emulated(problem, llvm::cantFail(codegen::cuda::parseSchedule(c.schedule)), archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const gate::Trial trial{.extents = {c.segments, c.rows, *problem.features}, .step = c.step};
  const gate::Verdict verdict = kernel->judge(problem, trial);
  ASSERT_TRUE(verdict.ok) << verdict.text;
  const package::Kernel& m = kernel->manifest;
  const package::Traffic& planned = c.step == 0 && m.warmupTraffic ? *m.warmupTraffic : m.traffic;
  EXPECT_EQ(planned.reads, c.reads);
  EXPECT_EQ(planned.leastReads.value_or(planned.reads), c.least);
  const Moved moved = movedBy(kernel->launches);
  const uint64_t row = uint64_t(trial.extents.features * bytes(problem.data));
  EXPECT_EQ(moved.read, row * uint64_t(c.segments) * plannedReads(planned, c.rows) + uint64_t(c.probed))
      << double(moved.read) / double(row * uint64_t(c.segments * c.rows)) << " reads";
  EXPECT_EQ(moved.written, row * uint64_t(c.segments * c.rows * planned.writes));
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedAgain,
    testing::Values(
        Again{"Rows", "rms_norm:forward@bf16[*x1024]", "resident,threads=64,team=64,vector=8,tile=0", 1, 9, 2,
              1},
        Again{"RowsHeld", "rms_norm:forward@bf16[*x1024]", "resident,threads=64,team=64,vector=8,tile=2", 1,
              9, 1, 1},
        Again{"RowsWithAShift", "layer_norm:forward@f32[*x1024]",
              "resident,threads=64,team=64,vector=4,tile=0", 1, 9, 2, 1, 5000, 9 * 2 * 64 * 16},
        Again{"RowsBackward", "layer_norm:backward@f32[*x512]",
              "resident,threads=64,team=64,vector=4,tile=0,chunks=2", 1, 9, 4, 2},
        Again{"Segments", "group_norm_segment:forward@f32[*x*x64]{groups=4}",
              "resident,threads=64,team=4,vector=4,tile=1,rows=2", 2, 40, 2, 1, 5000, 2 * 4 * 64 * 8 * 4},
        Again{"SegmentsBackward", "group_norm_segment:backward@f32[*x*x64]{groups=4}",
              "resident,threads=64,team=4,vector=4,tile=1,rows=2", 2, 40, 4, 2},
        Again{"Columns", "batch_norm:forward@f32[*x64]", "resident,threads=64,team=8,vector=4,tile=1,rows=2",
              1, 40, 2, 1, 5000, 2 * 64 * 8 * 16},
        Again{"ColumnsHeldInPart", "batch_norm:backward@f32[*x64]",
              "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2", 1, 40, 4, 2},
        Again{"ColumnsOfSegments", "instance_norm:forward@f32[*x*x64]",
              "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2", 2, 45, 2, 1, 5000, 2 * 8 * 64 * 4},
        Again{"Warmup", "power_norm_released:forward@f32[*x64]{heads=4}",
              "streamed,threads=64,team=4,vector=4,tile=1,chunks=2", 1, 40, 2, 2, 0},
        Again{"AfterWarmup", "power_norm_released:forward@f32[*x64]{heads=4}",
              "streamed,threads=64,team=4,vector=4,tile=1,chunks=2", 1, 40, 1, 1}),
    [](const auto& info) { return info.param.name; });

/// A column that is longer than what a block keeps is read again from there on.
TEST(EmulatedColumns, ReadAgainOnlyWhatTheyDoNotHold) {
  const Problem problem = *parseProblem("batch_norm:backward@f32[*x64]", findNorm);
  const auto schedule = llvm::cantFail(
      codegen::cuda::parseSchedule("resident,threads=64,team=8,vector=4,tile=1,rows=2,blocks=1,hold=3"));
  auto kernel = emulated(problem, schedule, archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  const uint64_t row = 64 * 4, held = 3 * 2 * (64 / 8);
  for (uint64_t rows : {47, 48, 49, 131}) {
    const gate::Verdict verdict = kernel->judge(problem, {.extents = {1, int64_t(rows), 64}});
    ASSERT_TRUE(verdict.ok) << verdict.text;
    EXPECT_EQ(movedBy(kernel->launches).read, 2 * row * (rows + (rows > held ? rows - held : 0))) << rows;
  }
}

TEST(EmulatedPowerNorm, MovesAsMuchAsLayerNorm) {
  for (const char* entry : {"forward", "backward", "infer"}) {
    const Moved power = moves(("power_norm:" + std::string(entry) + "@f32[*x512]").c_str(), 128, 5000);
    const Moved layer = moves(("layer_norm:" + std::string(entry) + "@f32[*x512]").c_str(), 128, 5000);
    EXPECT_EQ(power.read, layer.read) << entry;
    EXPECT_EQ(power.written, layer.written) << entry;
  }
}

TEST(EmulatedPowerNorm, StatisticsPhaseReadsNothingAfterWarmup) {
  const char* problem = "power_norm_released:forward@f32[*x256]{heads=4}";
  const uint64_t tensor = 128 * 256 * 4;
  EXPECT_EQ(moves(problem, 128, 0).read, 2 * tensor) << "the first step is warmup";
  EXPECT_EQ(moves(problem, 128, 3999).read, 2 * tensor) << "so is the last of them";
  EXPECT_EQ(moves(problem, 128, 4000).read, tensor);
  EXPECT_EQ(moves(problem, 128, 4000, "statistics").read, 0u);
}

TEST(EmulatedBatchNorm, ReadsAgainInTheSameBlocks) {
  for (const char* text : {"batch_norm:forward@f32[*x256]", "batch_norm:backward@bf16[*x*x256]"}) {
    const Problem problem = *parseProblem(text, findNorm);
    const auto arch = archOf("sm_90");
    auto schedule = defaultOf(problem, arch);
    schedule.chunks = 5;
    auto kernel = emulated(problem, schedule, arch);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (int64_t rows : {0, 1, 100, 1001}) {
      const Extents extents{problem.segmented ? 2 : 1, rows, 256};
      const gate::Verdict verdict =
          kernel->judge(problem, {.extents = extents, .placement = {.inPlace = true}});
      ASSERT_TRUE(verdict.ok) << verdict.text;
    }
    const auto& phases = kernel->manifest.phases;
    ASSERT_EQ(phases.front().role, "statistics");
    ASSERT_EQ(phases.back().role, "apply");
    EXPECT_EQ(phases.front().maxChunks, 5);
    EXPECT_EQ(phases.back().maxChunks, 5);
    EXPECT_EQ(phases.back().minUnits, phases.front().minUnits);
    EXPECT_EQ(phases.back().multiple, phases.front().multiple);
  }
}

/// Bytes of the accesses to x, of the kernel that is taken by default.
std::vector<int> widthsOf(const char* text, int64_t rows = 33) {
  const Problem problem = *parseProblem(text, findNorm);
  const auto arch = archOf("sm_90");
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  EXPECT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict =
      kernel->judge(problem, {.extents = {1, rows, *problem.features}, .step = 5000});
  EXPECT_TRUE(verdict.ok) << verdict.text;
  std::vector<int> widths;
  for (int i = 0; i < 6; ++i)
    if (kernel->launches[0].report.of("x").loads[i]) widths.push_back(1 << i);
  return widths;
}

TEST(EmulatedAccesses, AreAsWideAsAnEvenLengthAllows) {
  for (const char* norm : {"layer_norm", "power_norm"})
    for (const char* entry : {"forward", "backward"}) {
      const std::string name = std::string(norm) + ":" + entry;
      EXPECT_EQ(widthsOf((name + "@bf16[*x1000]").c_str()), std::vector{16}) << name;
      EXPECT_EQ(widthsOf((name + "@bf16[*x1004]").c_str()), std::vector{8}) << name;
      EXPECT_EQ(widthsOf((name + "@f32[*x1002]").c_str()), std::vector{8}) << name;
    }
}

/// Returns the share of the traffic by single elements: only the ends of odd rows.
double singleShareOf(const char* text, gate::Placement placement = {}, int64_t rows = 33) {
  const Problem problem = *parseProblem(text, findNorm);
  const auto arch = archOf("sm_90");
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  EXPECT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict =
      kernel->judge(problem, {.extents = {1, rows, problem.features.value_or(8193)}, .placement = placement});
  EXPECT_TRUE(verdict.ok) << verdict.text;
  double single = 0, all = 0;
  for (const char* tensor : {"x", "y"}) {
    const emulator::Traffic t = kernel->launches[0].report.of(tensor);
    for (int narrow = 0; narrow < 4; ++narrow)
      single += double((t.loads[narrow] + t.stores[narrow]) << narrow);
    all += double(t.bytesLoaded + t.bytesStored);
  }
  return single / all;
}

TEST(EmulatedAccesses, OfOddRowsAreWideButForTheirEnds) {
  EXPECT_LT(singleShareOf("layer_norm:forward@bf16[*x2001]"), 0.02);
  EXPECT_LT(singleShareOf("layer_norm:forward@f32[*x2001]"), 0.01);
  EXPECT_LT(singleShareOf("rms_norm:infer@f16[*x2001]"), 0.02);
  EXPECT_LT(singleShareOf("layer_norm:forward@bf16[*x*]"), 0.02) << "any number of features";
  EXPECT_LT(singleShareOf("group_norm:forward@f32[*x2001]{groups=3}"), 0.03) << "each group begins elsewhere";
}

TEST(EmulatedAccesses, OfRowsThatBeginAnywhereAreWideButForTheirEnds) {
  EXPECT_LT(singleShareOf("layer_norm:forward@bf16[*x2048]", {.rowPadding = 3}), 0.02);
  EXPECT_LT(singleShareOf("layer_norm:forward@f32[*x2048]", {.rowPadding = 1}), 0.01);
  EXPECT_LT(singleShareOf("layer_norm:forward@bf16[*x2048]", {.misalign = 1}), 0.02) << "all of them alike";
  const double skewed = singleShareOf("layer_norm:forward@bf16[*x2048]", {.misalign = 1, .skew = 1});
  EXPECT_GT(skewed, 0.5) << "y does not lie as x does";
  EXPECT_LT(skewed, 0.52) << "x is read by whole accesses all the same";
}

}  // namespace
}  // namespace normc
