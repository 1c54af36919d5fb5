#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dsl/HardInputs.h"
#include "dsl/Tolerance.h"

namespace normc {
namespace {

constexpr Extents kExtents{2, 30, 20};
constexpr DType kTypes[] = {DType::F32, DType::F64, DType::BF16, DType::F16};

TEST(HardInputs, AreValuesOfTheirType) {
  for (HardInput input : allHardInputs()) {
    for (DType type : kTypes) {
      for (double value : hardInput(input, kExtents, type)) {
        if (!std::isnan(value)) {
          EXPECT_EQ(value, round(value, type)) << name(input);
        }
      }
    }
  }
}

TEST(HardInputs, AreTheSameForTheSameSeedOnly) {
  const auto make = [](uint64_t seed) { return hardInput(HardInput::Normal, kExtents, DType::F32, seed); };
  EXPECT_EQ(make(1), make(1));
  EXPECT_NE(make(1), make(2));
  // On every machine: written down once, and exact in all types that hold 16 bits.
  EXPECT_EQ(normalValues(3, DType::F64, 7), (std::vector<double>{0x1.b0e8p-1, -0x1.6d7p-2, 0x1.cab4p-1}));
}

TEST(HardInputs, HaveTheMomentsTheyPromise) {
  for (const auto& [input, mean, sigma] : {std::tuple{HardInput::Normal, 0.0, 1.0},
                                           {HardInput::Mean1000, 1000.0, 0.5},
                                           {HardInput::Mean1e4, 1e4, 1.0}}) {
    const std::vector<double> x = hardInput(input, {1, 100, 100}, DType::F64);
    const double n = static_cast<double>(x.size()), average = std::accumulate(x.begin(), x.end(), 0.0) / n;
    double variance = 0;
    for (double each : x) variance += (each - average) * (each - average) / n;
    EXPECT_NEAR(average, mean, 0.05 * sigma) << name(input);
    EXPECT_NEAR(variance, sigma * sigma, 0.05 * sigma * sigma) << name(input);
  }
}

TEST(HardInputs, DriftIsFarFromItsMeanAtFirst) {
  constexpr Extents extents{1, 256, 200};
  const std::vector<double> x = hardInput(HardInput::Drift, extents, DType::F64);
  double apart = 0;  // the first eight rows, in sigmas
  for (int64_t f = 0; f < extents.features; ++f) {
    double sum = 0, squares = 0, first = 0;
    for (int64_t row = 0; row < extents.rows; ++row) {
      const double each = x[row * extents.features + f];
      sum += each, squares += each * each;
      if (row < 8) first += each / 8;
    }
    const double mean = sum / 256;
    apart += std::abs(first - mean) / std::sqrt(squares / 256 - mean * mean) / 200;
  }
  EXPECT_GT(apart, 1);
  EXPECT_LT(apart, 2);
  EXPECT_EQ(x[0], hardInput(HardInput::Drift, {2, 128, 200}, DType::F64)[0]);
}

TEST(HardInputs, AFrameIsZeroWhereRowsAndColumnsEndAndInARowOfEachSequence) {
  constexpr Extents extents{1, 1024, 300};
  const std::vector<double> x = hardInput(HardInput::Framed, extents, DType::F64);
  const auto at = [&](int64_t row, int64_t feature) { return x[row * extents.features + feature]; };
  for (int64_t i : {0, 31})
    for (double framed : {at(500, i), at(i, 150), at(500, 299 - i), at(1023 - i, 150)}) EXPECT_EQ(framed, 0);
  for (int64_t row = 64; row < 1024; row += 128) EXPECT_EQ(at(row, 150), 0);
  for (int64_t i : {32, 100, 267}) EXPECT_NEAR(at(500, i), 100, 6);
  EXPECT_NEAR(hardInput(HardInput::Framed, {1, 100, 100}, DType::F64)[0], 100, 6) << "what is short has none";
}

TEST(HardInputs, HugeKeepsItsSumOfSquaresInF32) {
  for (DType type : kTypes) {
    double squares = 0;
    for (double each : hardInput(HardInput::Huge, {8, 512, 64}, type)) squares += each * each;
    EXPECT_LT(squares, largest(DType::F32));
    EXPECT_GT(squares, 1e8);
  }
}

TEST(HardInputs, DenormalsAreSubnormalInTheirType) {
  for (DType type : kTypes) {
    const double smallestNormal = type == DType::F64 ? 0x1p-1022 : type == DType::F16 ? 0x1p-14 : 0x1p-126;
    const std::vector<double> x = hardInput(HardInput::Denormal, kExtents, type);
    for (double each : x) EXPECT_LE(std::abs(each), smallestNormal);
    EXPECT_GT(std::count_if(x.begin(), x.end(), [](double each) { return each != 0; }), 500);
  }
}

TEST(HardInputs, PlaceWhatIsNotFinite) {
  const auto count = [](HardInput input, auto&& is) {
    const std::vector<double> x = hardInput(input, kExtents, DType::F32);
    return std::count_if(x.begin(), x.end(), is);
  };
  const auto isNan = [](double x) { return std::isnan(x); };
  const auto isInfinite = [](double x) { return std::isinf(x); };
  EXPECT_EQ(count(HardInput::WithNan, isNan), 1);
  EXPECT_EQ(count(HardInput::WithInfinity, isInfinite), 2);
  EXPECT_EQ(count(HardInput::Huge, isInfinite), 0);
}

TEST(HardMasks, LeaveWhatTheySay) {
  const auto real = [](HardMask mask) {
    const std::vector<uint8_t> rows = hardMask(mask, kExtents);
    EXPECT_EQ(rows.size(), 60u);
    return std::count(rows.begin(), rows.end(), 1);
  };
  EXPECT_EQ(real(HardMask::AllReal), 60);
  EXPECT_EQ(real(HardMask::AllPadded), 0);
  EXPECT_EQ(real(HardMask::OneReal), 1);
  EXPECT_GT(real(HardMask::Scattered), 30);
  EXPECT_LT(real(HardMask::Scattered), 50);
  const std::vector<uint8_t> tails = hardMask(HardMask::Tails, kExtents);
  for (int segment = 0; segment < 2; ++segment) {
    EXPECT_TRUE(
        std::is_sorted(tails.begin() + 30 * segment, tails.begin() + 30 * segment + 30, std::greater<>()));
    EXPECT_EQ(tails[30 * segment], 1);
  }
}

TEST(HardInputs, OfNothingAreNothing) {
  for (HardInput input : allHardInputs()) EXPECT_TRUE(hardInput(input, {1, 0, 8}, DType::F32).empty());
  for (HardMask mask : allHardMasks()) EXPECT_TRUE(hardMask(mask, {3, 0, 8}).empty());
}

}  // namespace
}  // namespace normc
