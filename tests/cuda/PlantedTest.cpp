// Faults that are planted in the PTX of whole kernels, one by one: the emulator or the gate finds each.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

struct Fault {
  const char *name, *problem, *schedule;
  const char *pattern, *by;  ///< of the first entry
  const char* found;         ///< in the report
};

void PrintTo(const Fault& f, std::ostream* out) { *out << f.name; }

constexpr const char *kLayer = "layer_norm:forward@f32[*x512]",
                     *kLayerBackward = "layer_norm:backward@f32[*x512]",
                     *kBatch = "batch_norm:backward@f32[*x64]";
constexpr const char* kRow = "resident,threads=128,team=128,vector=4,tile=1";
constexpr const char* kRowBackward = "resident,threads=128,team=128,vector=4,tile=1,chunks=3";
constexpr const char* kOverGrid = "resident,threads=64,team=8,vector=4,tile=1,rows=2,hold=2,grid=3";

class Planted : public testing::TestWithParam<Fault> {};

TEST_P(Planted, IsFound) {
  const Fault& f = GetParam();
  const Problem problem = *parseProblem(f.problem, findNorm);
  const auto schedule = llvm::cantFail(codegen::cuda::parseSchedule(f.schedule));
  const gate::Trial trial{.extents = {1, 37, *problem.features}};
  auto right = emulated(problem, schedule, archOf("sm_90"));
  ASSERT_TRUE(right->plan) << right->error;
  const gate::Verdict verdict = right->judge(problem, trial);
  ASSERT_TRUE(verdict.ok) << verdict.text;
  right.reset();
  auto wrong = emulated(problem, schedule, archOf("sm_90"), replacedOnce("k_", f.pattern, f.by));
  const std::string text = wrong->plan ? wrong->judge(problem, trial).text : wrong->error;
  EXPECT_NE(text.find(f.found), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    InPtx, Planted,
    testing::Values(
        Fault{"ALostBarrier", kLayer, kRow, "bar\\.sync\\s+0;", "", "uninitialised"},
        Fault{"ABarrierOfSomeThreads", kLayer, kRow, "bar\\.sync\\s+0;",
              "{ .reg .pred q; .reg .b32 t; mov.u32 t, %tid.x; setp.ne.u32 q, t, 5; @q bar.sync 0; }",
              "data race"},
        Fault{"ABarrierThatSomeThreadsMeetTwice", kLayer, kRow, "bar\\.sync\\s+0;",
              "{ .reg .pred q; .reg .b32 t; mov.u32 t, %tid.x; setp.ne.u32 q, t, 5; @q bar.sync 0; bar.sync "
              "0; }",
              "divergence"},
        Fault{"ALostRelease", kBatch, kOverGrid, "st\\.release\\.gpu", "st.relaxed.gpu", "data race"},
        Fault{"ALostAcquire", kBatch, kOverGrid, "ld\\.acquire\\.gpu", "ld.relaxed.gpu", "data race"},
        Fault{"ANarrowerVector", kLayer, kRow, "v4\\.b32\\s+\\{(%r\\d+, %r\\d+), %r\\d+, %r\\d+\\}",
              "v2.b32 {$1}", "which is not written on every path to it"},
        Fault{"AWiderVector", kLayer, "resident,threads=128,team=128,vector=2,tile=2",
              "st\\.global\\.v2\\.b32\\s+(\\[[^\\]]*\\]), \\{(%r\\d+), (%r\\d+)\\}",
              "st.global.v4.b32 $1, {$2, $3, $2, $3}", "misaligned"},
        Fault{"AnAddressOfTheNextVector", kLayer, kRow, "(st\\.global\\.v4\\.b32\\s+\\[%rd\\d+)\\]", "$1+16]",
              "memory around y was written"},
        Fault{"SwappedOperands", kLayer, kRow, "sub\\.rn\\.f32(\\s+%r\\d+), (%r\\d+), (%r\\d+);",
              "sub.rn.f32$1, $3, $2;", "got "},
        Fault{"ASumOfTheWrongLanes", "rms_norm:forward@f32[*x512]", kRow,
              "(shfl\\.sync\\.bfly\\.b32\\s+%r\\d+, %r\\d+), 16,", "$1, 8,", "got "},
        Fault{"AShuffleOfFewerLanes", kLayer, kRow, "(shfl\\.sync\\.bfly[^;]*), -1;", "$1, 65535;",
              "the value of lane 16, which mask 0x0000ffff does not name"},
        Fault{"AWrongPredicate", kLayer, kRow, "@(%p\\d+) bra", "@!$1 bra", "got "},
        Fault{"ARegisterThatNothingWrites", kLayerBackward, kRowBackward,
              "mul\\.wide\\.u32\\s+%rd\\d+, [^;]*;", "", "which is not written on every path to it"},
        Fault{"ARegisterForAnother", kLayerBackward, kRowBackward,
              "fma\\.rn\\.f32(\\s+%r\\d+), (%r\\d+), (%r\\d+), %r\\d+;", "fma.rn.f32$1, $2, $3, $3;",
              "got "}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace normc
