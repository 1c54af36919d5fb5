// One kernel for any number of features over the sizes where loops change shape,
// and the families of schedules at the lengths that they are for.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "dsl/Norms.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

class EmulatedAnySize : public testing::TestWithParam<const char*> {};

TEST_P(EmulatedAnySize, ServesEveryShape) {
  Problem problem = *parseProblem(GetParam(), findNorm);
  auto arch = archOf("sm_90");
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (int64_t features : {1, 3, 7, 8, 15, 127, 128, 768, 1000, 1024, 4097})
    for (int64_t rows : {0, 1, 33}) {
      gate::Trial trial{.extents = {1, rows, features}, .step = 2, .seed = uint64_t(rows + features)};
      gate::Verdict verdict = kernel->judge(problem, trial);
      ASSERT_TRUE(verdict.ok) << verdict.text;
    }
  gate::Trial tall{.extents = {1, 2048, 40}, .step = 2};
  gate::Verdict verdict = kernel->judge(problem, tall);
  EXPECT_TRUE(verdict.ok) << verdict.text;
}
INSTANTIATE_TEST_SUITE_P(Norms, EmulatedAnySize,
                         testing::Values("layer_norm:forward@f32[*x*]", "layer_norm:backward@f32[*x*]",
                                         "rms_norm:forward@bf16[*x*]", "rms_norm:backward@bf16[*x*]",
                                         "power_norm:forward@f32[*x*]", "power_norm:backward@f32[*x*]",
                                         "batch_norm:forward@f32[*x*]", "batch_norm:backward@f32[*x*]",
                                         "power_norm_v:backward@f16[*x*]",
                                         "power_norm_released:forward@f32[*x*]{heads=1,mask}",
                                         "power_norm_released:backward@f32[*x*]{heads=1,mask}"));

/// Groups of a row whose number of features is not known begin where no access of 16 bytes may.
class EmulatedGroups : public testing::TestWithParam<const char*> {};

TEST_P(EmulatedGroups, BeginAnywhere) {
  Problem problem = *parseProblem(GetParam(), findNorm);
  auto arch = archOf("sm_90");
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (int64_t features : {4, 12, 36, 132, 1024}) {
    gate::Trial trial{.extents = {problem.segmented ? 2 : 1, 5, features}, .step = 2};
    gate::Verdict verdict = kernel->judge(problem, trial);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}
INSTANTIATE_TEST_SUITE_P(Norms, EmulatedGroups,
                         testing::Values("group_norm:forward@f32[*x*]{groups=4}",
                                         "group_norm:backward@f32[*x*]{groups=4}",
                                         "group_norm_segment:forward@bf16[*x*x*]{groups=4}",
                                         "group_norm_segment:backward@f32[*x*x*]{groups=4}",
                                         "power_norm_released:forward@f32[*x*]{heads=4}",
                                         "power_norm_released:backward@bf16[*x*]{heads=4}"));

/// Channels with an odd number of rows are adjacent, so each begins at another alignment.
TEST(EmulatedChannels, OfOddLengthsBeginAnywhere) {
  for (const char* text : {"instance_norm:forward@bf16[*x3x*]{layout=channels_first}",
                           "instance_norm:backward@f32[*x3x*]{layout=channels_first,mask}"}) {
    Problem problem = *parseProblem(text, findNorm);
    auto arch = archOf("sm_90");
    auto kernel = emulated(problem, defaultOf(problem, arch), arch);
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (int64_t rows : {7, 257, 2049, 10001}) {
      gate::Verdict verdict = kernel->judge(problem, {.extents = {2, rows, 3}, .step = 2});
      EXPECT_TRUE(verdict.ok) << verdict.text;
    }
  }
}

/// Rows that begin anywhere are peeled, and factors per feature of the phase before lie at other columns in
/// each.
TEST(EmulatedPeeledRows, TakeVectorsOfAnEarlierPhaseWhereTheyLie) {
  const char* const text = R"(norm scaled {
  pre       group_scaling(groups = 2)
  reduce    rows
  center    current
  moment    central
  affine    scale, bias
  epsilon   0.001
}
)";
  const auto specs = parseNorms(text, "scaled.norm", {});
  ASSERT_TRUE(specs);
  for (const char* which : {"scaled:forward@f32[*x80]", "scaled:backward@bf16[*x80]"}) {
    const Problem problem = *parseProblem(which, [&](std::string_view) { return specs->front(); });
    const auto schedule = llvm::cantFail(
        codegen::cuda::parseSchedule("streamed,threads=64,team=16,vector=4,tile=1,rows=1,chunks=3"));
    auto kernel = emulated(problem, schedule, archOf("sm_80"));
    ASSERT_TRUE(kernel->plan) << kernel->error;
    for (int64_t padding : {0, 3}) {
      const gate::Verdict verdict =
          kernel->judge(problem, {.extents = {1, 21, 80}, .placement = {.rowPadding = padding}});
      EXPECT_TRUE(verdict.ok) << verdict.text;
    }
  }
}

/// A family: a schedule for a problem, at sizes that end inside a step, a team, a task.
struct Family {
  const char *name, *problem, *schedule;
  int64_t rows;
};
void PrintTo(const Family& f, std::ostream* out) { *out << f.name; }
class EmulatedFamily : public testing::TestWithParam<Family> {};

TEST_P(EmulatedFamily, IsRightInEveryThreadOrder) {
  Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto schedule = llvm::cantFail(codegen::cuda::parseSchedule(GetParam().schedule));
  auto kernel = emulated(problem, schedule, archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  using emulator::Order;
  for (Order order : {Order::Ascending, Order::Random}) {  // and each time another one
    kernel->driver->options.order = order;
    gate::Trial trial{.extents = {1, GetParam().rows, *problem.features}, .step = 1};
    gate::Verdict verdict = kernel->judge(problem, trial);
    EXPECT_TRUE(verdict.ok) << verdict.text;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedFamily,
    testing::Values(
        Family{"SubWarpRow", "rms_norm:forward@bf16[*x64]",
               "resident,threads=128,team=8,vector=8,tile=1,rows=4,chunks=8,blocks=0,prefetch=0", 67},
        Family{"WarpRow", "layer_norm:forward@bf16[*x1024]",
               "resident,threads=128,team=32,vector=8,tile=4,rows=1,chunks=8,blocks=0,prefetch=0", 9},
        Family{"BlockRow", "layer_norm:forward@f32[*x4096]",
               "resident,threads=256,team=256,vector=4,tile=4,rows=1,chunks=8,blocks=0,prefetch=0", 3},
        Family{"PeeledSubWarpRow", "layer_norm:forward@bf16[*x61]",
               "resident,threads=128,team=4,vector=8,tile=2,rows=2,chunks=8,blocks=0,prefetch=0", 67},
        Family{"PeeledPairs", "layer_norm:forward@bf16[*x515]",
               "resident,threads=128,team=64,vector=2,tile=5,rows=3,chunks=8,blocks=0,prefetch=0", 19},
        Family{"PeeledRowsThatBeginEachElsewhere", "layer_norm:forward@f32[*x509]",
               "resident,threads=32,team=32,vector=4,tile=4,rows=3", 21},
        Family{"PeeledLoopedRow", "rms_norm:forward@f32[*x3001]",
               "resident,threads=128,team=64,vector=4,tile=0,rows=2,chunks=8,blocks=0,prefetch=0", 9},
        Family{"HintedRow", "layer_norm:backward@bf16[*x1024]",
               "resident,threads=64,team=64,vector=8,tile=2,rows=1,chunks=4,blocks=0,prefetch=1,hints=1", 13},
        Family{"HintedPeeledRow", "layer_norm:forward@f16[*x517]",
               "resident,threads=64,team=32,vector=2,tile=9,rows=1,chunks=4,blocks=0,prefetch=0,hints=1", 13},
        Family{"OddWarps", "layer_norm:forward@f32[*x1152]",
               "resident,threads=96,team=96,vector=4,tile=3,rows=1,chunks=8,blocks=0,prefetch=0", 3},
        Family{"LoopedRow", "layer_norm:forward@bf16[*x16384]",
               "resident,threads=512,team=512,vector=8,tile=0,rows=1,chunks=8,blocks=1,prefetch=0", 2},
        Family{"SubWarpRowBackward", "layer_norm:backward@f32[*x64]",
               "resident,threads=128,team=16,vector=4,tile=1,rows=2,chunks=3,blocks=0,prefetch=1", 71},
        Family{"BlockRowBackward", "layer_norm:backward@bf16[*x2048]",
               "resident,threads=128,team=128,vector=8,tile=2,rows=1,chunks=3,blocks=0,prefetch=1", 13},
        Family{"LongTask", "rms_norm:backward@f32[*x32]",
               "resident,threads=32,team=8,vector=4,tile=1,rows=1,chunks=1,blocks=0,prefetch=0", 613},
        Family{"Columns", "batch_norm:forward@f32[*x96]",
               "streamed,threads=64,team=8,vector=4,tile=2,rows=2,chunks=3,blocks=0,prefetch=0", 77},
        Family{"ColumnsBackward", "power_norm:backward@bf16[*x320]",
               "streamed,threads=128,team=32,vector=8,tile=1,rows=2,chunks=3,blocks=0,prefetch=0", 45},
        Family{"WholeColumns", "batch_norm:forward@f32[*x40]",
               "resident,threads=128,team=4,vector=4,tile=1,rows=4,chunks=8,blocks=1,prefetch=0", 50},
        Family{"HeldColumns", "batch_norm:forward@bf16[*x40]",
               "resident,threads=64,team=8,vector=4,tile=1,rows=2,blocks=1,hold=3", 50},
        Family{"HeldColumnsBackward", "power_norm_v:backward@f32[*x36]",
               "resident,threads=128,team=8,vector=4,tile=1,rows=1,blocks=1,hold=2", 45},
        Family{"GroupsInARow", "power_norm_released:forward@f32[*x256]{heads=8}",
               "streamed,threads=64,team=4,vector=4,tile=2,rows=2,chunks=3,blocks=0,prefetch=0", 37}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace normc
