// How the units of a phase are cut, where no chunk may have units of two segments.
#include <gtest/gtest.h>

#include "runtime/abi/Partition.h"

namespace normc::package {
namespace {

Kernel kernelOf(bool bySegment, int64_t minUnits) {
  Kernel kernel;
  Phase phase;
  phase.units = {kSegments, kRows};
  phase.minUnits = minUnits, phase.multiple = 4, phase.maxChunks = 256;
  phase.bySegment = bySegment;
  kernel.phases.push_back(phase);
  return kernel;
}

normc_cut cutOf(const Kernel& kernel, int64_t segments, int64_t rows) {
  normc_cut cut{};
  EXPECT_TRUE(computeCuts(kernel, {segments, rows, 64}, &cut));
  return cut;
}

TEST(Partition, BySegmentGivesEachSegmentAsManyChunks) {
  const Kernel kernel = kernelOf(true, 64);
  normc_cut cut = cutOf(kernel, 3, 1000);
  EXPECT_EQ(cut.units, 3000);
  EXPECT_EQ(cut.chunks, 3 * 16);
  EXPECT_EQ(cut.chunk_units, 64);
  cut = cutOf(kernel, 500, 7);
  EXPECT_EQ(cut.chunks, 500) << "a segment is never joined with its neighbour";
  EXPECT_EQ(cut.chunk_units, 8);
  cut = cutOf(kernel, 1, 1000);
  const normc_cut whole = cutOf(kernelOf(false, 64), 1, 1000);
  EXPECT_EQ(cut.chunks, whole.chunks);
  EXPECT_EQ(cut.chunk_units, whole.chunk_units);
}

TEST(Partition, BySegmentHasNoChunkWithoutRows) {
  const Kernel kernel = kernelOf(true, 64);
  EXPECT_EQ(cutOf(kernel, 5, 0).chunks, 0);
  EXPECT_EQ(cutOf(kernel, 0, 5).chunks, 0);
}

TEST(Partition, BoundsOfChunksBySegmentHoldForSmallerCalls) {
  for (int64_t least : {1, 5, 64, 1000}) {
    const Kernel kernel = kernelOf(true, least);
    for (int64_t segments : {1, 3, 40, 700})
      for (int64_t rows : {1, 9, 100, 3000}) {
        normc_cut bound{};
        ASSERT_TRUE(boundCuts(kernel, {segments, rows, 64}, &bound));
        for (int64_t s = 1; s <= segments; s += 1 + segments / 7)
          for (int64_t r = 1; r <= rows; r += 1 + rows / 9)
            EXPECT_LE(cutOf(kernel, s, r).chunks, bound.chunks) << least << ": " << s << " x " << r;
      }
  }
}

}  // namespace
}  // namespace normc::package
