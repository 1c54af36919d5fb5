#include <gtest/gtest.h>

#include <cmath>

#include "autotune/measure/Copy.h"
#include "autotune/measure/Tensors.h"

namespace normc::measure {
namespace {

TEST(Memory, ScatteredHoldsTheSameAndIsItsOwn) {
  for (const int64_t count : {0, 1, 1024, 70000}) {
    Memory memory(count * 4);
    auto* from = static_cast<uint32_t*>(memory.data());
    for (uint32_t i = 0; i < count; ++i) from[i] = i + 1;
    const Memory other = scattered(memory, 7);
    ASSERT_EQ(other.bytes(), memory.bytes());
    EXPECT_NE(other.data(), memory.data());
    for (uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(static_cast<const uint32_t*>(other.data())[i], i + 1) << count;
  }
}

class Copies : public testing::TestWithParam<std::tuple<Stores, int>> {};

TEST_P(Copies, MoveEveryWholeStep) {
  const auto [stores, threads] = GetParam();
  constexpr int64_t kCount = 4096 + 32;
  Memory x(kCount * 4), y(kCount * 4);
  auto* from = static_cast<uint32_t*>(x.data());
  auto* to = static_cast<uint32_t*>(y.data());
  for (uint32_t i = 0; i < kCount; ++i) from[i] = i + 1, to[i] = 0;
  makeCopy({x.data()}, {y.data()}, kCount * 4, {1, 1}, stores, threads)->run(1);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(to[i], i + 1) << i;
}

TEST_P(Copies, ReadBothInputs) {
  const auto [stores, threads] = GetParam();
  constexpr int64_t kCount = 1024;
  Memory x(kCount * 4), dy(kCount * 4), dx(kCount * 4);
  for (uint32_t i = 0; i < kCount; ++i)
    static_cast<uint32_t*>(x.data())[i] = i, static_cast<uint32_t*>(dy.data())[i] = 1000 * i;
  makeCopy({x.data(), dy.data()}, {dx.data()}, kCount * 4, {4, 1}, stores, threads)->run(2);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(static_cast<uint32_t*>(dx.data())[i], 1001 * i) << i;
}

INSTANTIATE_TEST_SUITE_P(All, Copies,
                         testing::Combine(testing::Values(Stores::Cached, Stores::Streaming),
                                          testing::Values(1, 2, 3)));

TEST(BenchTensors, HoldNoSubnormalsAndLookNormal) {
  const Tensors tensors(DType::F32, {1, 100, 100}, true);
  double sum = 0, squares = 0;
  for (int i = 0; i < 10000; ++i) {
    const float value = static_cast<const float*>(tensors[kX])[i];
    ASSERT_TRUE(value == 0 || std::abs(value) > 1e-6f);
    sum += value, squares += value * value;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);
  EXPECT_NEAR(squares / 10000, 1, 0.05);
}

TEST(BenchTensors, RoundToTheirType) {
  uint16_t half[2], brain[2];
  store({1.5f, -2.f}, DType::F16, half);
  store({1.5f, 1.00390625f}, DType::BF16, brain);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(half[0], 0x3e00);
  EXPECT_EQ(half[1], 0xc000);
  EXPECT_EQ(brain[0], 0x3fc0);
  EXPECT_EQ(brain[1], 0x3f80);
}

}  // namespace
}  // namespace normc::measure
