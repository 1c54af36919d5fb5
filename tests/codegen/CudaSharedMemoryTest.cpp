// Shared memory that entries declare: what is counted before a kernel is made, and what its PTX has.
#include <regex>

#include "codegen/targets/cuda/Compile.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Traits.h"
#include "codegen/targets/cuda/Variants.h"
#include "tests/codegen/CudaReasons.h"

namespace normc::codegen::cuda {
namespace {

/// The bytes of the variables in shared memory that an entry names.
int64_t declaredBytes(const std::string& ptx, const std::string& entry) {
  const size_t begin = ptx.find(".entry " + entry + "(");
  EXPECT_NE(begin, ptx.npos) << entry;
  const std::string body = ptx.substr(begin, ptx.find("\n}", begin) - begin);
  static const std::regex variable(R"(\.shared \.align \d+ \.b8 (\w+)\[(\d+)\])");
  int64_t bytes = 0;
  for (auto at = std::sregex_iterator(ptx.begin(), ptx.end(), variable); at != std::sregex_iterator(); ++at)
    if (std::regex_search(body, std::regex("\\b" + (*at)[1].str() + "\\b")))
      bytes += int64_t(llvm::alignTo(std::stoll((*at)[2]), 16));
  return bytes;
}

struct Case {
  const char *name, *problem, *schedule;
  const char* arch = "sm_90";
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class CudaSharedMemory : public testing::TestWithParam<Case> {};

/// A count may be more: it has two places for sums that need one.
TEST_P(CudaSharedMemory, OfAnEntryIsWhatWasCountedAtMost) {
  const Problem problem = problemOf(GetParam().problem);
  const Arch arch = archOf(GetParam().arch);
  const Schedule schedule = llvm::cantFail(parseSchedule(GetParam().schedule));
  const KernelTraits traits = traitsOf(problem, schedule.strategy);
  const int64_t counted = staticBytes(traits, schedule);
  auto kernel = compileKernel(problem, schedule, arch, "k", {.make = false});
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  int64_t most = 0;
  for (const package::Phase& phase : kernel->manifest.phases) {
    if (phase.launch->threads != schedule.threads) continue;  // it only folds
    most = std::max(most, declaredBytes(kernel->ptx, phase.symbol));
    if (phase.unaligned) most = std::max(most, declaredBytes(kernel->ptx, *phase.unaligned));
  }
  EXPECT_LE(most, counted);
  EXPECT_LE(counted, 2 * most + 512) << "far more than there is would refuse what fits";
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, CudaSharedMemory,
    testing::Values(
        Case{"RowsOfABlock", "layer_norm:forward@f32[*x4096]",
             "resident,threads=256,team=256,vector=4,tile=4"},
        Case{"RowsTogether", "layer_norm:forward@f32[*x1024]",
             "resident,threads=256,team=64,vector=4,tile=4,rows=4"},
        Case{"RowsWithSumsPerFeature", "layer_norm:backward@bf16[*x4096]",
             "resident,threads=256,team=128,vector=8,tile=4,chunks=8,prefetch=6"},
        Case{"RowsThatBeginAlike", "layer_norm:backward@f32[*x1023]",
             "resident,threads=128,team=128,vector=4,tile=2,chunks=8"},
        Case{"RowsInALoop", "layer_norm:backward@f32[*x*]",
             "resident,threads=256,team=256,vector=4,tile=0,chunks=8"},
        Case{"GroupsOfARow", "group_norm:backward@f32[*x1024]{groups=2,mask}",
             "resident,threads=256,team=64,vector=4,tile=2,chunks=8"},
        Case{"GroupsOfSegments", "group_norm_segment:backward@f32[*x*x256]{groups=2}",
             "resident,threads=256,team=32,vector=4,tile=1,rows=2,chunks=8"},
        Case{"Cluster", "layer_norm:forward@f32[*x32768]",
             "resident,threads=256,team=256,vector=4,tile=4,cluster=8"},
        Case{"ClusterOfSixteen", "layer_norm:forward@f32[*x1015808]",
             "resident,threads=512,team=512,vector=4,tile=4,chunks=8,blocks=1,cluster=16,shared=27"},
        Case{"ClusterThatReadsAhead", "layer_norm:forward@bf16[*x32768]",
             "resident,threads=256,team=256,vector=8,tile=4,chunks=16,prefetch=5,cluster=4"},
        Case{"ClusterOfColumns", "batch_norm:backward@f32[*x1024]",
             "resident,threads=128,team=8,vector=4,tile=1,chunks=8,cluster=8,hold=4"},
        Case{"Columns", "batch_norm:forward@f32[*x1024]{mask}",
             "resident,threads=256,team=8,vector=4,tile=1,rows=4,chunks=8,hold=4"},
        Case{"ColumnsOverTheGrid", "batch_norm:forward@f32[*x1024]",
             "resident,threads=128,team=8,vector=4,tile=1,chunks=8,hold=4,grid=4"},
        Case{"RowsOverTheGrid", "layer_norm:backward@f32[*x4096]",
             "resident,threads=256,team=256,vector=4,tile=2,chunks=8,blocks=1,grid=2", "sm_80"},
        Case{"Stream", "batch_norm:backward@bf16[*x1024]",
             "streamed,threads=512,team=32,vector=8,tile=1,rows=2,chunks=66,blocks=1,prefetch=2"},
        Case{"StreamOfOddRows", "power_norm:forward@bf16[*x1001]",
             "streamed,threads=256,team=32,vector=8,tile=1,rows=2,chunks=66,blocks=1"},
        Case{"RowsBelowColumns", "power_norm_released:backward@bf16[*x512]{heads=2,mask}",
             "streamed,threads=128,team=64,vector=8,tile=1,rows=1,chunks=8"}),
    [](const auto& info) { return info.param.name; });

TEST(CudaSchedule, RefusesMoreSharedMemoryThanAnEntryDeclares) {
  const auto stream = [](int64_t threads, const char* problem) {
    return reason(problem,
                  {.strategy = Strategy::Streamed, .threads = threads, .team = 32, .vector = 8, .chunks = 64},
                  [](Schedule&) {});
  };
  const char* const problem = "power_norm:forward@bf16[*x4096]";
  EXPECT_EQ(stream(512, problem), "");
  EXPECT_EQ(
      stream(1024, problem),
      "threads = 1024, vector = 8, rows = 1, cluster = 1: what threads tell each other takes 65536 bytes "
      "of shared memory; an entry declares at most 49152");
}

/// Sixteen blocks tell each other the parts of two sums in two buffers of 2 KiB each.
TEST(CudaSchedule, CountsWhatBlocksOfAClusterTellEachOther) {
  const auto shared = [](int64_t accesses, const char* problem) {
    return reason(problem,
                  {.strategy = Strategy::Resident,
                   .threads = 512,
                   .team = 512,
                   .vector = 4,
                   .tile = 4,
                   .blocks = 1,
                   .cluster = 16,
                   .shared = accesses},
                  [](Schedule&) {});
  };
  EXPECT_EQ(shared(27, "layer_norm:forward@f32[*x1015808]"), "");
  EXPECT_EQ(shared(28, "layer_norm:forward@f32[*x1048576]"),
            "shared = 28 accesses of 512 threads, 16 bytes each for 1 tensors of 1 rows and 0 sums, take "
            "229376 bytes of a block; sm_90 with blocks = 1 has 228336 for each");
  EXPECT_EQ(shared(28, "rms_norm:forward@f32[*x1048576]"), "") << "of one sum";
}

/// The entry for any alignment transposes sums, and is launched with as much dynamic memory.
TEST(CudaSchedule, CountsWhatTheEntryForAnyAlignmentDeclares) {
  const KernelTraits traits = traitsOf(problemOf("layer_norm:backward@f32[*x1024]"), Strategy::Resident);
  const Schedule s{.strategy = Strategy::Resident, .threads = 128, .team = 128, .vector = 4, .tile = 2};
  EXPECT_EQ(transposeBuffers(s) * transposedBytes(s), 2 * 4 * (128 + 8) * 4);
  EXPECT_EQ(staticBytes(traits, s), 2 * 4 * (128 + 8) * 4 + 2 * 2 * 4 * 4);
}

}  // namespace
}  // namespace normc::codegen::cuda
