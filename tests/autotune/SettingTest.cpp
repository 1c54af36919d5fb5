// How many rows of a task are screened.
#include <gtest/gtest.h>

#include "autotune/tune/Setting.h"
#include "dsl/Library.h"
#include "dsl/Print.h"

namespace normc::tune::test {
namespace {

constexpr int64_t kLastCache = int64_t(32) << 20;

int64_t screened(const std::string& problem, int64_t rows, int64_t features, int64_t threads = 1,
                 const std::string& policy = "warm") {
  Task task;
  task.problem = *parseProblemText(problem);
  task.policy = policy;
  task.rows = rows;
  task.features = features;
  task.threads = threads;
  return screeningRows(task, print(**findNorm("layer_norm")), kLastCache);
}

TEST(ScreeningRows, AreTheFewestWhoseTensorsHaveTheBytesOfTheLastCache) {
  const int64_t rows = screened("layer_norm:forward@f32[*x4096]", 10240, 4096);
  const int64_t ofRow = 2 * 4096 * 4;  // x and y
  EXPECT_GE(rows * ofRow, kLastCache);
  EXPECT_LE((rows - 256) * ofRow, kLastCache);
  EXPECT_LT(screened("layer_norm:backward@f32[*x4096]", 10240, 4096), rows) << "a third tensor";
  EXPECT_EQ(screened("layer_norm:forward@f32[*x4096]", 10240, 4096, 3) % (3 * 256), 0);
}

TEST(Memory, HoldsTwoSetsOfTheTensorsOfATask) {
  Task task;
  task.problem = *parseProblemText("layer_norm:backward@f32[*x2048]");
  task.policy = "warm";
  task.rows = 1 << 21;
  task.features = 2048;
  const auto why = [&](int64_t free) { return whyOutOfMemory(task, print(**findNorm("layer_norm")), free); };
  EXPECT_EQ(why(int64_t(23) << 30), "its tensors need about 96 GiB, and 23 GiB are free");
  EXPECT_EQ(why(int64_t(128) << 30), "");
}

TEST(ScreeningRows, MakeALargeCall) {
  EXPECT_GE(screened("layer_norm:backward@bf16[*x4096]", 102400, 4096) * 4096 * 2, 12 << 20);
}

TEST(ScreeningRows, AreThoseOfTheTaskWhereTheOutputIsRead) {
  EXPECT_GT(screened("layer_norm:forward@f32[*x4096]", 10240, 4096, 1, "cold"), 0);
  EXPECT_EQ(screened("layer_norm:forward@f32[*x4096]", 10240, 4096, 1, "pipeline"), 0)
      << "the output of fewer rows would be in the caches";
}

TEST(ScreeningRows, AreThoseOfTheTaskWhereFewerSaveLittle) {
  EXPECT_EQ(screened("layer_norm:forward@f32[*x4096]", 16, 4096), 0);
  EXPECT_EQ(screened("layer_norm:forward@f32[*x4096]", 2000, 4096), 0) << "more than half of them";
  EXPECT_EQ(screened("layer_norm:forward@f32[*x4194304]", 64, 4194304), 0) << "few long rows";
}

}  // namespace
}  // namespace normc::tune::test
