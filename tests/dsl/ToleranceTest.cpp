#include <cmath>
#include <limits>

#include "dsl/Tolerance.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Ulp, IsThatOfTheBinade) {
  EXPECT_EQ(ulp(1, DType::F32), 0x1p-23);
  EXPECT_EQ(ulp(-1.9, DType::F32), 0x1p-23);
  EXPECT_EQ(ulp(2, DType::F32), 0x1p-22);
  EXPECT_EQ(ulp(1, DType::F64), 0x1p-52);
  EXPECT_EQ(ulp(1, DType::BF16), 0x1p-7);
  EXPECT_EQ(ulp(1, DType::F16), 0x1p-10);
}

TEST(Ulp, IsConstantBelowTheSmallestNormal) {
  EXPECT_EQ(ulp(0, DType::F32), 0x1p-149);
  EXPECT_EQ(ulp(0x1p-140, DType::F32), 0x1p-149);
  EXPECT_EQ(ulp(0x1p-126, DType::F32), 0x1p-149);
  EXPECT_EQ(ulp(0, DType::BF16), 0x1p-133);
  EXPECT_EQ(ulp(1e-6, DType::F16), 0x1p-24);
  EXPECT_EQ(ulp(0, DType::F64), 0x1p-1074);
  EXPECT_TRUE(std::isnan(ulp(kInfinity, DType::F32)));
}

TEST(Round, GoesToTheNearestAndTiesToEven) {
  EXPECT_EQ(round(1 + 0x1p-8, DType::BF16), 1);               // a tie, 1 is even
  EXPECT_EQ(round(1 + 3 * 0x1p-8, DType::BF16), 1 + 0x1p-6);  // a tie, upwards to even
  EXPECT_EQ(round(1 + 0x1p-8 + 0x1p-30, DType::BF16), 1 + 0x1p-7);
  EXPECT_EQ(round(-2049, DType::F16), -2048);
  EXPECT_EQ(round(2051, DType::F16), 2052);
}

/// From each value of 16 bits to the next one, subnormals and all.
TEST(Round, KeepsEveryValueOfATypeAndTakesWhatLiesBetweenToTheNearerOne) {
  for (DType type : {DType::F16, DType::BF16}) {
    bool even = true;
    for (double value = 0; value < largest(type); even = !even) {
      const double next = value + ulp(value, type), tie = (value + next) / 2;
      ASSERT_EQ(round(value, type), value);
      ASSERT_EQ(round(-value, type), -value);
      ASSERT_EQ(round(tie, type), even ? value : next);
      ASSERT_EQ(round(-tie, type), even ? -value : -next);
      ASSERT_EQ(round(std::nextafter(tie, 0), type), value);
      ASSERT_EQ(round(std::nextafter(tie, next), type), next);
      value = next;
    }
  }
}

TEST(Round, IsTheNearestOfF32) {
  for (double value : {0.1, -1e-40, 3e38, 1e-46, 16777217.0, -0.0, 1 + 0x1p-24}) {
    const double unit = ulp(value, DType::F32);
    EXPECT_EQ(round(value, DType::F32), std::nearbyint(value / unit) * unit) << value;
  }
}

TEST(Round, KeepsSubnormals) {
  EXPECT_EQ(round(0x1p-24, DType::F16), 0x1p-24);
  EXPECT_EQ(round(0x1p-25, DType::F16), 0);  // a tie, 0 is even
  EXPECT_EQ(round(0x1.8p-25, DType::F16), 0x1p-24);
  EXPECT_EQ(round(0x1p-133, DType::BF16), 0x1p-133);
  EXPECT_TRUE(std::signbit(round(-0x1p-30, DType::F16)));
}

TEST(Round, OverflowsToInfinityFromHalfAnUlpAboveTheLargest) {
  EXPECT_EQ(largest(DType::F16), 65504);
  EXPECT_EQ(round(65519.9, DType::F16), 65504);
  EXPECT_EQ(round(65520, DType::F16), kInfinity);
  EXPECT_EQ(round(-1e39, DType::BF16), -kInfinity);
  EXPECT_EQ(round(kInfinity, DType::F16), kInfinity);
  EXPECT_TRUE(std::isnan(round(kNan, DType::BF16)));
  EXPECT_EQ(largest(DType::F32), std::numeric_limits<float>::max());
  EXPECT_EQ(largest(DType::F64), std::numeric_limits<double>::max());
}

Problem problemOf(const Spec& spec, DType data = DType::F32) {
  Problem problem;
  problem.spec = std::make_shared<const Spec>(spec);
  problem.data = data;
  problem.params = data == DType::F64 ? DType::F64 : DType::F32;
  return problem;
}

TEST(Tolerance, OfOutputsFollowsWhatIsCombined) {
  const Extents extents{1, 1000, 64};
  EXPECT_EQ(toleranceOf(problemOf(layerNorm()), "y", extents).relative, 5e-7);
  EXPECT_EQ(toleranceOf(problemOf(powerNorm()), "dx", extents).relative, 5e-7);
  EXPECT_EQ(toleranceOf(problemOf(batchNorm()), "y", extents).relative, 6e-7);
  EXPECT_EQ(toleranceOf(problemOf(powerNormV()), "dx", extents).relative, 6e-7);
}

TEST(Tolerance, OfSumsGrowsMildlyWithTheirLength) {
  const Problem problem = problemOf(layerNorm());
  const auto relative = [&](int64_t rows) { return toleranceOf(problem, "dscale", {1, rows, 64}).relative; };
  EXPECT_LT(relative(1), 5.4e-7);
  EXPECT_NEAR(relative(4096), 5e-7 + 32 * 0x1p-24, 1e-9);
  EXPECT_EQ(relative(100'000'000), 5e-6);
  // A statistic of a row sums its features, however many rows there are.
  EXPECT_LT(toleranceOf(problem, "saved.rstd", {1, 1 << 20, 64}).relative, 8e-7);
}

// What a gradient is a sum of follows from the shape that the norm gives it.
TEST(Tolerance, OfGradientsAroundTheNormFollowsTheirShape) {
  const Extents extents{1000, 4096, 64};
  Spec spec = layerNorm();
  spec.modulate = Spec::Modulate{.scale = true, .shift = true};
  const auto relative = [&](const Spec& of, const char* output) {
    return toleranceOf(problemOf(of), output, extents).relative;
  };
  EXPECT_NEAR(relative(spec, "dmod_scale"), 5e-7 + 32 * 0x1p-24, 1e-9);
  EXPECT_EQ(relative(spec, "dmod_shift"), relative(spec, "dmod_scale"));
  spec.modulate->per = Per::Row;
  EXPECT_EQ(relative(spec, "dmod_scale"), 5e-7);
  for (const auto& [per, want] : {std::pair(Per::Row, 5e-7), std::pair(Per::Segment, 5e-7 + 32 * 0x1p-24),
                                  std::pair(Per::Feature, 5e-6)}) {
    spec.gate = Spec::Gate{.function = Activation::Silu, .side = Side::After, .per = per};
    EXPECT_NEAR(relative(spec, "dgate"), want, 1e-9);
  }
  // The terms of a gate before are dx, with the level of its statistics.
  Spec batch = batchNorm();
  batch.gate = Spec::Gate{.function = Activation::Silu, .side = Side::Before, .per = Per::Segment};
  EXPECT_NEAR(relative(batch, "dgate"), 6e-7 + 32 * 0x1p-24, 1e-9);
  batch.residual = Spec::Residual{};
  for (const char* output : {"residual_out", "dresidual", "dx"}) EXPECT_EQ(relative(batch, output), 6e-7);
}

TEST(Tolerance, OfGradientsAroundTheNormIsOfTheTypeOfTheData) {
  Spec spec = layerNorm();
  spec.modulate = Spec::Modulate{.scale = true};
  spec.gate = Spec::Gate{.function = Activation::Silu, .side = Side::Before, .per = Per::Feature};
  spec.residual = Spec::Residual{};
  for (const char* output : {"residual_out", "dresidual", "dgate", "dmod_scale"}) {
    const Tolerance tolerance = toleranceOf(problemOf(spec, DType::BF16), output, {1, 8, 8});
    EXPECT_EQ(tolerance.stored, DType::BF16) << output;
    EXPECT_GT(tolerance.ulps, 0.5) << output;
  }
}

TEST(Tolerance, OfAStreamIsOfItsOwnType) {
  Spec spec = layerNorm();
  spec.residual = Spec::Residual{};
  Problem problem = problemOf(spec, DType::BF16);
  problem.stream = DType::F32;
  for (const char* output : {"residual_out", "dresidual"}) {
    EXPECT_EQ(toleranceOf(problem, output, {1, 8, 8}).stored, DType::F32) << output;
    EXPECT_EQ(toleranceOf(problem, output, {1, 8, 8}).ulps, 0) << output;
  }
  EXPECT_EQ(toleranceOf(problem, "dx", {1, 8, 8}).stored, DType::BF16);
  // A result that is subnormal in f32 may be flushed, whatever the statistics are.
  problem.data = problem.params = DType::F64;
  EXPECT_EQ(toleranceOf(problem, "residual_out", {1, 8, 8}).floor, 0x1p-126);
  EXPECT_LT(toleranceOf(problem, "dx", {1, 8, 8}).floor, 0x1p-1000);
}

TEST(Tolerance, OfF64IsThatOfF32InItsOwnUnit) {
  const Tolerance narrow = toleranceOf(problemOf(layerNorm()), "y", {1, 8, 8});
  const Tolerance wide = toleranceOf(problemOf(layerNorm(), DType::F64), "y", {1, 8, 8});
  EXPECT_DOUBLE_EQ(wide.relative, narrow.relative * 0x1p-28);
  EXPECT_EQ(wide.stored, DType::F64);
  EXPECT_EQ(wide.ulps, 0);
}

TEST(Tolerance, OfNarrowStoresGrantsTheirRounding) {
  Problem problem = problemOf(layerNorm(), DType::BF16);
  EXPECT_NEAR(toleranceOf(problem, "y", {1, 8, 8}).ulps, 0.5, 0.01);
  EXPECT_EQ(toleranceOf(problem, "y", {1, 8, 8}).stored, DType::BF16);
  EXPECT_EQ(toleranceOf(problem, "saved.rstd", {1, 8, 8}).ulps, 0);
  EXPECT_EQ(toleranceOf(problem, "dscale", {1, 8, 8}).ulps, 0);
  problem.params = DType::BF16;
  EXPECT_GT(toleranceOf(problem, "dscale", {1, 8, 8}).ulps, 0.5);
}

TEST(Tolerance, OfStepsAndCountsIsNone) {
  for (const char* output : {"state.step", "saved.step", "saved.count"}) {
    const Tolerance tolerance = toleranceOf(problemOf(mabn(2, 2)), output, {1, 8, 8});
    EXPECT_TRUE(compare({{3}, {3}}, {3}, tolerance).ok);
    EXPECT_FALSE(compare({{3}, {3}}, {4}, tolerance).ok);
  }
}

TEST(Compare, NamesTheWorstElement) {
  const Tolerance tolerance{.relative = 1e-6, .ulps = 0, .floor = 0, .stored = DType::F32};
  const Quantity want{{1, 2, 3}, {1, 2, 3}};
  const Agreement agreement = compare(want, {1, 2.00001, 3.00001}, tolerance);
  EXPECT_FALSE(agreement.ok);
  EXPECT_EQ(agreement.worst, 1);
  EXPECT_NEAR(agreement.worstRatio, 5, 1e-3);
  EXPECT_NEAR(agreement.relativeError, 5e-6, 1e-9);
  EXPECT_EQ(agreement.text, "element 1 of 3: got 2.00001, want 2, error 1e-05, allowed 2e-06");
}

TEST(Compare, JudgesByTheMagnitude) {
  const Tolerance tolerance{.relative = 1e-6, .ulps = 0, .floor = 0, .stored = DType::F32};
  EXPECT_FALSE(compare({{1}, {1}}, {1.001}, tolerance).ok);
  EXPECT_TRUE(compare({{1}, {2000}}, {1.001}, tolerance).ok);
  EXPECT_TRUE(compare({{0}, {0}}, {0}, tolerance).ok);
  EXPECT_FALSE(compare({{0}, {0}}, {1e-40}, tolerance).ok);
  EXPECT_TRUE(
      compare({{0}, {0}}, {1e-40}, {.relative = 0, .ulps = 0, .floor = 0x1p-126, .stored = DType::F32}).ok);
}

TEST(Compare, GrantsUlpsOfTheStoredType) {
  const Tolerance tolerance{.relative = 0, .ulps = 0.51, .floor = 0, .stored = DType::F16};
  EXPECT_TRUE(compare({{1 + 0x1p-11}, {1}}, {1}, tolerance).ok);
  EXPECT_FALSE(compare({{1 + 0x1p-11}, {1}}, {1 - 0x1p-11}, tolerance).ok);
}

TEST(Compare, WantsNanAndInfinityInTheirPlaces) {
  const Tolerance tolerance{.relative = 1e-6, .ulps = 0, .floor = 1, .stored = DType::F32};
  const auto agrees = [&](double want, double got) {
    return compare({{want}, {std::abs(want)}}, {got}, tolerance).ok;
  };
  EXPECT_TRUE(agrees(kNan, kNan));
  EXPECT_FALSE(agrees(kNan, 0));
  EXPECT_FALSE(agrees(0, kNan));
  EXPECT_TRUE(agrees(kInfinity, kInfinity));
  EXPECT_FALSE(agrees(kInfinity, -kInfinity));
  EXPECT_FALSE(agrees(kInfinity, 1e38));
  EXPECT_FALSE(agrees(1e38, kInfinity));
  EXPECT_EQ(compare({{0, kNan}, {0, kNan}}, {0, 1}, tolerance).text, "element 1 of 2: got 1, want nan");
}

TEST(Compare, AcceptsTheOverflowOfTheStoredType) {
  const Tolerance tolerance{.relative = 0, .ulps = 0.51, .floor = 0, .stored = DType::F16};
  EXPECT_TRUE(compare({{65530}, {65530}}, {kInfinity}, tolerance).ok);
  EXPECT_TRUE(compare({{65510}, {65510}}, {kInfinity}, tolerance).ok);  // within the bound of the limit
  EXPECT_FALSE(compare({{65000}, {65000}}, {kInfinity}, tolerance).ok);
  EXPECT_FALSE(compare({{65530}, {65530}}, {-kInfinity}, tolerance).ok);
}

TEST(Compare, AcceptsNaNOnlyWherePartsOfTheSumMayOverflow) {
  const Tolerance tolerance = toleranceOf(problemOf(layerNorm()), "dscale", {1, 4, 8});
  const double largestF32 = largest(DType::F32);
  const std::vector<double> nan{std::numeric_limits<double>::quiet_NaN()};
  EXPECT_TRUE(compare({{4e48}, {5e48}}, nan, tolerance).ok);
  EXPECT_TRUE(compare({{1}, {largestF32 * 1.01}}, nan, tolerance).ok);
  EXPECT_FALSE(compare({{1}, {largestF32}}, nan, tolerance).ok);
  EXPECT_FALSE(compare({{kInfinity}, {kInfinity}}, nan, tolerance).ok) << "an infinity of the formula";
}

// Where terms cancel, the bound may be larger than the value, and reach overflow on both sides of zero.
TEST(Compare, AcceptsTheOtherInfinityOnlyWhereTheBoundReachesIt) {
  const Tolerance tolerance{.relative = 0x1p-10, .ulps = 0.51, .floor = 0, .stored = DType::F16};
  EXPECT_TRUE(compare({{-1e6}, {0x1p40}}, {kInfinity}, tolerance).ok);
  EXPECT_TRUE(compare({{1e6}, {0x1p40}}, {-kInfinity}, tolerance).ok);
  EXPECT_FALSE(compare({{-1e6}, {0x1p30}}, {kInfinity}, tolerance).ok) << "1e6 - 2^20 is no overflow";
  EXPECT_FALSE(compare({{-1e6}, {1e6}}, {kInfinity}, tolerance).ok);
}

TEST(Compare, RefusesAnotherLength) {
  const Agreement agreement = compare({{1, 2}, {1, 2}}, {1}, {});
  EXPECT_FALSE(agreement.ok);
  EXPECT_EQ(agreement.text, "got 1 elements, want 2");
  EXPECT_TRUE(compare({}, {}, {}).ok);
}

}  // namespace
}  // namespace normc
