// Congruent rows (CongruentRuns.cpp): odd rows with sums per feature, and streams of them, wherever they
// begin.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "tests/cuda/Emulated.h"

namespace normc {
namespace {

struct Case {
  const char *name, *problem, *schedule;
  Extents extents;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EmulatedAlike : public testing::TestWithParam<Case> {};

TEST_P(EmulatedAlike, IsRightWhereverRowsBegin) {
  const Problem problem = *parseProblem(GetParam().problem, findNorm);
  auto kernel =
      emulated(problem, llvm::cantFail(codegen::cuda::parseSchedule(GetParam().schedule)), archOf("sm_90"));
  ASSERT_TRUE(kernel->plan) << kernel->error;
  using emulator::Order;
  const auto judged = [&](Order order, const gate::Placement& placement) {
    kernel->driver->options.order = order;
    const gate::Verdict verdict =
        kernel->judge(problem, {.extents = GetParam().extents, .step = 5000, .placement = placement});
    EXPECT_TRUE(verdict.ok) << verdict.text;
  };
  for (Order order : {Order::Ascending, Order::Descending, Order::Random}) judged(order, {.inPlace = true});
  judged(Order::Random, {.misalign = 1, .inPlace = true});
  judged(Order::Random, {.rowPadding = 1, .segmentPadding = 3, .misalign = 3});
  judged(Order::Descending, {.misalign = 1, .skew = 1});
}
INSTANTIATE_TEST_SUITE_P(
    Cuda, EmulatedAlike,
    testing::Values(Case{"Rows",
                         "layer_norm:backward@f32[*x79]",
                         "resident,threads=64,team=16,vector=4,tile=2,chunks=5,prefetch=1",
                         {1, 45, 79}},
                    Case{"RowsOfOneTeam",
                         "rms_norm:backward@bf16[*x257]",
                         "resident,threads=64,team=64,vector=8,tile=1,chunks=9",
                         {1, 37, 257}},
                    Case{"RowsOverTwoBlocks",
                         "layer_norm:backward@f32[*x257]",
                         "resident,threads=32,team=32,vector=4,tile=1,chunks=5,prefetch=1,cluster=2",
                         {1, 14, 257}},
                    Case{"RowsOfAnEvenNumber",
                         "layer_norm:backward@bf16[*x64]",
                         "resident,threads=32,team=8,vector=8,tile=1,rows=2,chunks=3",
                         {1, 29, 64}},
                    Case{"MaskedRows",
                         "layer_norm:backward@f32[*x79]{mask}",
                         "resident,threads=32,team=32,vector=4,tile=1,chunks=3",
                         {1, 21, 79}},
                    Case{"OneRow",
                         "layer_norm:backward@bf16[*x79]",
                         "resident,threads=32,team=16,vector=8,tile=1,chunks=3,prefetch=1",
                         {1, 1, 79}},
                    Case{"Batch",
                         "batch_norm:forward@f32[*x79]",
                         "streamed,threads=64,team=8,vector=4,tile=1,rows=4,chunks=5",
                         {1, 90, 79}},
                    Case{"BatchBackward",
                         "batch_norm:backward@bf16[*x79]",
                         "streamed,threads=64,team=4,vector=8,tile=1,rows=2,chunks=9,hints=1",
                         {1, 140, 79}},
                    Case{"BatchOfSegments",
                         "batch_norm:backward@f32[*x*x79]",
                         "streamed,threads=32,team=8,vector=4,tile=1,rows=1,chunks=3",
                         {3, 9, 79}},
                    Case{"MaskedBatch",
                         "batch_norm:forward@f32[*x*x79]{mask}",
                         "streamed,threads=32,team=8,vector=4,tile=1,rows=1,chunks=3",
                         {2, 14, 79}},
                    Case{"BatchInfer",
                         "batch_norm:infer@bf16[*x257]",
                         "streamed,threads=64,team=8,vector=8,tile=2,rows=2",
                         {1, 33, 257}},
                    Case{"Power",
                         "power_norm:forward@bf16[*x257]",
                         "streamed,threads=64,team=32,vector=8,tile=1,rows=2,chunks=9",
                         {1, 70, 257}},
                    Case{"PowerOfNoRows",
                         "power_norm:forward@f32[*x79]",
                         "streamed,threads=64,team=8,vector=4,tile=1,rows=2,chunks=9",
                         {1, 0, 79}},
                    Case{"PowerBackward",
                         "power_norm:backward@f32[*x79]",
                         "streamed,threads=64,team=8,vector=4,tile=2,rows=2,chunks=4",
                         {1, 61, 79}}),
    [](const auto& info) { return info.param.name; });

/// The bytes that a default kernel moved of its X-sized tensors, and how many of them by single elements.
struct Moved {
  uint64_t bytes = 0, single = 0;
};
Moved movedBy(const char* text, int64_t rows, gate::Placement placement = {}) {
  const Problem problem = *parseProblem(text, findNorm);
  const auto arch = archOf("sm_90");
  auto kernel = emulated(problem, defaultOf(problem, arch), arch);
  EXPECT_TRUE(kernel->plan) << kernel->error;
  const gate::Verdict verdict =
      kernel->judge(problem, {.extents = {1, rows, *problem.features}, .step = 5000, .placement = placement});
  EXPECT_TRUE(verdict.ok) << verdict.text;
  Moved moved;
  for (size_t i = 0; i < kernel->launches.size() / 2; ++i)
    for (const char* tensor : {"x", "dy", "y", "dx"}) {
      const emulator::Traffic t = kernel->launches[i].report.of(tensor);
      for (int narrow = 0; narrow < 4; ++narrow)
        moved.single += (t.loads[narrow] + t.stores[narrow]) << narrow;
      moved.bytes += t.bytesLoaded + t.bytesStored;
    }
  return moved;
}

/// Every byte once, as of even rows, and the ends alone by elements: of a row of 1001, at most 14 on each
/// side of the sums.
TEST(EmulatedAlikeRows, MoveEachByteOnceAndAllButTheirEndsInWholeAccesses) {
  const auto share = [](const char* text, int64_t rows, uint64_t transfers, gate::Placement placement = {}) {
    const Problem problem = *parseProblem(text, findNorm);
    const Moved moved = movedBy(text, rows, placement);
    EXPECT_EQ(moved.bytes, transfers * uint64_t(rows * *problem.features * bytes(problem.data))) << text;
    return double(moved.single) / double(moved.bytes);
  };
  EXPECT_LT(share("layer_norm:backward@bf16[*x1001]", 24, 3), 0.01);
  EXPECT_LT(share("rms_norm:backward@f32[*x1001]", 12, 3), 0.005);
  EXPECT_LT(share("layer_norm:backward@bf16[*x1024]", 24, 3, {.rowPadding = 1, .misalign = 3}), 0.01);
  EXPECT_LT(share("power_norm:forward@bf16[*x1001]", 64, 2), 0.03)
      << "a block's columns have ends of their own";
  EXPECT_LT(share("power_norm:backward@f32[*x1001]", 64, 3), 0.03);
  EXPECT_LT(share("batch_norm:infer@bf16[*x1001]", 64, 2), 0.03);
}

}  // namespace
}  // namespace normc
