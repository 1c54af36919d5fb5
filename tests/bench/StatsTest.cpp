#include <gtest/gtest.h>

#include "autotune/measure/Stats.h"

namespace normc::measure {
namespace {

TEST(Stats, MedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({5, 1, 100}), 5);
  EXPECT_EQ(median({7}), 7);
}

TEST(Stats, ADriftThatBothMeetLeavesTheirRatioAlone) {
  const Samples ours = {1, 2, 4, 8}, theirs = {2, 4, 8, 16};
  const Ratio ratio = pairedRatio(ours, theirs);
  EXPECT_DOUBLE_EQ(ratio.value, 0.5);
  EXPECT_DOUBLE_EQ(ratio.low, 0.5);
  EXPECT_DOUBLE_EQ(ratio.high, 0.5);
}

TEST(Stats, IntervalHoldsTheMedianAndTheSpreadOfTheSamples) {
  Samples ours, theirs(41, 1.0);
  for (int i = 0; i < 41; ++i) ours.push_back(0.8 + 0.01 * i);
  const Ratio ratio = pairedRatio(ours, theirs);
  EXPECT_NEAR(ratio.value, 1.0, 1e-12);
  EXPECT_LT(ratio.low, 1.0);
  EXPECT_GT(ratio.high, 1.0);
  EXPECT_GT(ratio.low, 0.8);  // the median is surer than a sample
  EXPECT_LT(ratio.high, 1.2);
}

TEST(Stats, SameSamplesGiveTheSameInterval) {
  const Samples ours = {1.0, 1.3, 0.9, 1.1, 1.2}, theirs = {1.1, 1.0, 1.2, 0.9, 1.0};
  const Ratio first = pairedRatio(ours, theirs), second = pairedRatio(ours, theirs);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
}

TEST(Stats, GeometricMeanOfAHalfAndADoubleIsOne) {
  EXPECT_NEAR(geometricMean({{{1, 1}, {2, 2}}, {{4, 4}, {2, 2}}}).value, 1.0, 1e-12);
}

}  // namespace
}  // namespace normc::measure
