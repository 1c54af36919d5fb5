// The requirements of the gate on kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/end_to_end/Compiled.h"

namespace normc {
namespace {

std::set<int64_t> rowsAsked(int64_t features) {
  std::set<int64_t> rows;
  for (const gate::Trial& trial : gate::standardTrials(problemOf("layer_norm:backward@f32[*x*]"), features))
    rows.insert(trial.extents.rows);
  return rows;
}

TEST(Gate, AsksFewerRowsOfVeryLongOnes) {
  EXPECT_EQ(rowsAsked(1024), (std::set<int64_t>{0, 1, 3, 5, 21, 33, 129}));
  EXPECT_EQ(rowsAsked(65536), (std::set<int64_t>{0, 1, 3, 5, 16}))
      << "a million elements keep the reference busy enough";
  EXPECT_EQ(*rowsAsked(int64_t(1) << 24).rbegin(), 5) << "but never fewer than five";
}

}  // namespace
}  // namespace normc
