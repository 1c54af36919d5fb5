// Schedules of the CUDA target whose blocks work together, in a cluster or over the grid, and the reasons
// against them.
#include "codegen/targets/cuda/Launch.h"
#include "tests/codegen/CudaReasons.h"

namespace normc::codegen::cuda {
namespace {

/// A cluster of blocks for a row of LayerNorm.
template <typename Change>
std::string reasonOfCluster(Change change, const char* problem = "layer_norm:forward@f32[*x2048]",
                            const char* arch = "sm_90") {
  return reason(problem,
                {.strategy = Strategy::Resident,
                 .threads = 64,
                 .team = 64,
                 .vector = 4,
                 .tile = 2,
                 .rows = 1,
                 .chunks = 8,
                 .cluster = 4},
                change, arch);
}

TEST(CudaSchedule, SpreadsRowsOverClusters) {
  auto same = [](Schedule&) {};
  EXPECT_EQ(reasonOfCluster(same), "");
  EXPECT_EQ(reasonOfCluster(same, "layer_norm:backward@f32[*x2048]"), "");
  EXPECT_EQ(reasonOfCluster(same, "layer_norm:infer@bf16[*x2000]{mask}"), "");
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.team = 32; }, "group_norm:backward@f32[*x2048]{groups=2}"),
            "");
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.tile = 1, s.cluster = 8; }, "rms_norm:forward@f32[*x2048]",
                            "sm_120"),
            "");
}

TEST(CudaSchedule, RefusesClustersThatAreNone) {
  for (int64_t cluster : {0, -2, 3, 12, 32})
    EXPECT_EQ(reasonOfCluster([&](Schedule& s) { s.cluster = cluster; }),
              "cluster = " + std::to_string(cluster) + "; legal: a power of two up to 16");
  for (const char* arch : {"sm_80", "sm_89"})
    EXPECT_EQ(
        reasonOfCluster([](Schedule&) {}, "layer_norm:forward@f32[*x2048]", arch),
        "cluster = 4, but " + std::string(arch) + " has no clusters of blocks, sm_90 is the first; legal: 1");
}

TEST(CudaSchedule, SpreadsTheRowsOfColumnsOverClusters) {
  auto columns = [](auto change, const char* problem = "batch_norm:forward@f32[*x1024]",
                    const char* arch = "sm_90") {
    const Schedule s{.strategy = Strategy::Resident,
                     .threads = 128,
                     .team = 8,
                     .vector = 4,
                     .tile = 1,
                     .rows = 1,
                     .chunks = 8,
                     .cluster = 8,
                     .hold = 4};
    return reason(problem, s, change, arch);
  };
  auto same = [](Schedule&) {};
  EXPECT_EQ(columns(same), "");
  EXPECT_EQ(columns(same, "power_norm_v:backward@bf16[*x*x*]{mask}", "sm_120"), "");
  EXPECT_EQ(columns(same, "instance_norm:backward@f32[*x*x64]"), "") << "a team may be less than a warp";
  EXPECT_EQ(columns([](Schedule& s) { s.cluster = 16; }), "");
  EXPECT_EQ(columns(same, "batch_norm:forward@f32[*x1024]", "sm_80"),
            "cluster = 8, but sm_80 has no clusters of blocks, sm_90 is the first; legal: 1");
  EXPECT_EQ(
      columns([](Schedule& s) { s.team = 32, s.cluster = 16; }),
      "threads = 128, vector = 4, rows = 1, cluster = 16: what threads tell each other takes 53264 bytes "
      "of shared memory; an entry declares at most 49152");
}

/// Blocks of the grid below each other.
template <typename Change>
std::string reasonOfGrid(Change change, const char* problem = "batch_norm:forward@f32[*x1024]",
                         const char* arch = "sm_80") {
  const Schedule s{.strategy = Strategy::Resident,
                   .threads = 128,
                   .team = 8,
                   .vector = 4,
                   .tile = 1,
                   .rows = 1,
                   .chunks = 8,
                   .hold = 4,
                   .grid = 27};
  return reason(problem, s, change, arch);
}

TEST(CudaSchedule, SpreadsTheRowsOfColumnsOverTheGrid) {
  auto same = [](Schedule&) {};
  for (const char* arch : {"sm_80", "sm_90", "sm_100"})
    for (const char* problem : {"batch_norm:forward@f32[*x1024]", "batch_norm:backward@bf16[*x*]",
                                "power_norm_v:backward@f32[*x*x*]{mask}"})
      EXPECT_EQ(reasonOfGrid(same, problem, arch), "") << problem << " " << arch;
  EXPECT_EQ(reasonOfGrid([](Schedule& s) { s.grid = 108; }), "");
  EXPECT_EQ(reasonOfGrid([](Schedule& s) { s.grid = 216, s.blocks = 2; }), "");
}

TEST(CudaSchedule, RefusesAGridThatIsNone) {
  for (int64_t grid : {0, -4})
    EXPECT_EQ(reasonOfGrid([&](Schedule& s) { s.grid = grid; }),
              "grid = " + std::to_string(grid) + "; legal: at least 1");
  EXPECT_EQ(reasonOfGrid([](Schedule& s) { s.cluster = 2; }, "batch_norm:forward@f32[*x1024]", "sm_90"),
            "grid = 27 blocks in clusters of 2; legal: one of the two");
}

TEST(CudaSchedule, RefusesMoreBlocksThatWaitThanThereAreAtOnce) {
  EXPECT_EQ(reasonOfGrid([](Schedule& s) { s.grid = 109; }),
            "grid = 109 blocks that wait for each other; sm_80 holds 108 at once, 1 on each of 108 "
            "multiprocessors");
  EXPECT_EQ(reasonOfGrid([](Schedule& s) { s.grid = 300, s.blocks = 2; }),
            "grid = 300 blocks that wait for each other; sm_80 holds 216 at once, 2 on each of 108 "
            "multiprocessors");
}

TEST(CudaSchedule, HoldsLessOverAGridBeforeSm90) {
  auto more = [](Schedule& s) { s.rows = 4, s.hold = 6; };
  EXPECT_EQ(reasonOfGrid(more),
            "hold = 6 keeps 96 elements of a thread; beside what blocks of a grid tell each other sm_80 has "
            "registers for 80");
  EXPECT_EQ(reasonOfGrid([](Schedule& s) { s.rows = 4, s.hold = 5; }), "");
  EXPECT_EQ(reasonOfGrid(more, "batch_norm:forward@f32[*x1024]", "sm_90"), "");
}

TEST(CudaSchedule, RefusesAGridForWhatIsNotReadForAStatisticOfAllRows) {
  const std::string wanted =
      "grid = 2, but only rows with statistics of their own, or columns of all rows, which are read for "
      "their statistic and then again, "
      "lie over a grid; legal: 1";
  EXPECT_EQ(reasonOfStream([](Schedule& s) { s.grid = 2; }), wanted);
  EXPECT_EQ(reasonOfGrid([](Schedule& s) { s.grid = 2; }, "instance_norm:forward@f32[*x*x64]"), wanted)
      << "a segment has its own";
}

TEST(CudaSchedule, RefusesAGridThatDoesNotFitTheRow) {
  const auto over = [](int64_t grid, int64_t tile, int64_t shared = 0) {
    return [=](Schedule& s) { s.grid = grid, s.tile = tile, s.shared = shared; };
  };
  const char* const problem = "layer_norm:forward@f32[*x1536]";
  for (const char* arch : {"sm_80", "sm_90"}) {
    EXPECT_EQ(reasonOfRow(over(3, 4), problem, arch), "");
    EXPECT_EQ(reasonOfRow(over(3, 2, 2), problem, arch), "");
    EXPECT_EQ(reasonOfRow(over(3, 3), problem, arch),
              "team * grid * vector * tile = 1152 elements do not hold a run of 1536");
    EXPECT_EQ(reasonOfRow(over(3, 3, 2), problem, arch),
              "team * grid * vector * (tile + shared) = 1920: the last accesses would find nothing of a run "
              "of 1536");
    EXPECT_EQ(
        reasonOfRow(over(13, 1), problem, arch),
        "team * grid * vector * tile = 1664: the last of 13 blocks would find nothing of a run of 1536");
  }
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.grid = 2, s.tile = 0, s.team = s.threads; }),
            "grid = 2, but no run of this kernel stays in registers; legal: 1");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.grid = 2, s.team = 16; }),
            "grid = 2 blocks that share rows, with team = 16 for each of 1 groups in 128 threads; legal: "
            "whole warps of 32 that divide them");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.grid = 2, s.cluster = 2; }),
            "grid = 2 blocks in clusters of 2; legal: one of the two");
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.grid = 200, s.tile = 1; }, "layer_norm:forward@f32[*x25600]", "sm_80"),
      "grid = 200 blocks that wait for each other; sm_80 holds 108 at once, 1 on each of 108 "
      "multiprocessors");
}

TEST(CudaSchedule, CutsAGridIntoTasksThatAreThereAtOnce) {
  Schedule s{.strategy = Strategy::Resident, .chunks = 8, .grid = 27};
  EXPECT_EQ(tasksTogether(s, archOf("sm_80")), 4);
  EXPECT_EQ(tasksTogether(s, archOf("sm_90")), 4);
  s.blocks = 2;
  EXPECT_EQ(tasksTogether(s, archOf("sm_90")), 8) << "9, but chunks says 8";
  s.grid = 216;
  EXPECT_EQ(tasksTogether(s, archOf("sm_80")), 1);
}

TEST(CudaSchedule, RefusesClustersForWhatIsNoRow) {
  const std::string wanted =
      "cluster = 2, but only rows with statistics of their own, or columns that are complete in a block, lie "
      "over blocks; legal: 1";
  EXPECT_EQ(reasonOfStream([](Schedule& s) { s.cluster = 2; }), wanted);
  EXPECT_EQ(reasonOfStream([](Schedule& s) { s.cluster = 2; }, "power_norm:forward@f32[*x256]"), wanted);
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.cluster = 2; },
                            "group_norm_segment:forward@f32[*x*x2048]{groups=2}"),
            wanted);
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.tile = 0; }),
            "cluster = 4, but no run of this kernel stays in registers; legal: 1");
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.tile = 0; }, "layer_norm:forward@f32[*x*]"),
            "cluster = 4, but no run of this kernel stays in registers; legal: 1");
}

TEST(CudaSchedule, RefusesTeamsThatCannotMeetInACluster) {
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.team = 16, s.tile = 8; }),
            "team = 16 in a cluster of 4 blocks; legal: whole warps of 32");
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.team = 64, s.tile = 1; },
                            "group_norm:forward@f32[*x2048]{groups=2}"),
            "team = 64 for each of 2 groups in a cluster of 4 blocks does not divide the 64 threads of one");
}

TEST(CudaSchedule, RefusesAClusterThatDoesNotFitTheRow) {
  EXPECT_EQ(reasonOfCluster([](Schedule&) {}, "layer_norm:forward@f32[*x2052]"),
            "team * cluster * vector * tile = 2048 elements do not hold a run of 2052");
  EXPECT_EQ(reasonOfCluster([](Schedule&) {}, "layer_norm:forward@f32[*x1024]"),
            "team * cluster * vector * tile = 2048: the last accesses would find nothing of a run of 1024");
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.tile = 1; }, "layer_norm:forward@f32[*x768]"),
            "team * cluster * vector * tile = 1024: the last of 4 blocks would find nothing of a run of 768");
  EXPECT_EQ(reasonOfCluster([](Schedule& s) { s.tile = 1; }, "layer_norm:forward@f32[*x772]"), "");
}

}  // namespace
}  // namespace normc::codegen::cuda
