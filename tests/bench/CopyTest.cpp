#include <gtest/gtest.h>

#include <cmath>

#include "autotune/measure/Buffers.h"
#include "autotune/measure/Copy.h"
#include "autotune/measure/Tensors.h"
#include "dsl/Library.h"

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

TEST(Buffers, CountEachTensorOfACallOnceAndInItsType) {
  const Extents extents{1, 10, 64};
  const auto check = [&](const char* text, Traffic traffic, int64_t ofElements) {
    const auto problem = parseProblem(text, findNorm);
    ASSERT_TRUE(problem) << text;
    EXPECT_EQ(Buffers::leastTraffic(*problem), traffic) << text;
    EXPECT_EQ(Buffers::bytesOfSet(*problem, extents), 10 * 64 * ofElements) << text;
    EXPECT_EQ(Buffers::bytesOfTransfer(*problem, extents), 10 * 64 * ofElements / traffic.total()) << text;
  };
  check("layer_norm:backward@f32[*x64]", {2, 1}, 3 * 4);
  check("rms_norm_residual:forward@bf16[*x64]", {2, 2}, 4 * 2);
  check("rms_norm:forward@bf16[*x64]{y=f32}", {1, 1}, 2 + 4);
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

TEST_P(Copies, HaveAsManyInputsAndOutputsAsTheTraffic) {
  const auto [stores, threads] = GetParam();
  constexpr int64_t kCount = 1024;
  const auto value = [](const Memory& memory, uint32_t i) {
    return static_cast<uint32_t*>(memory.data())[i];
  };
  for (const auto& [traffic, read, written] : {std::tuple(Traffic{1, 1}, 1, 1),
                                               {Traffic{2, 2}, 2, 2},
                                               {Traffic{3, 2}, 3, 2},
                                               {Traffic{5, 4}, 3, 3}}) {
    std::vector<Memory> memory;
    for (int tensor = 0; tensor < 6; ++tensor) {
      memory.emplace_back(kCount * 4);
      for (uint32_t i = 0; i < kCount; ++i)
        static_cast<uint32_t*>(memory.back().data())[i] = tensor < 3 ? (1u << 8 * tensor) + i : 0;
    }
    makeCopy({memory[0].data(), memory[1].data(), memory[2].data()},
             {memory[3].data(), memory[4].data(), memory[5].data()}, kCount * 4, traffic, stores, threads)
        ->run(1);
    for (uint32_t i = 0; i < kCount; ++i) {
      uint32_t sum = 0;
      for (int tensor = 0; tensor < read; ++tensor) sum += value(memory[size_t(tensor)], i);
      for (int tensor = 0; tensor < 3; ++tensor)
        ASSERT_EQ(value(memory[size_t(3 + tensor)], i), tensor < written ? sum : 0)
            << traffic.reads << " reads, " << traffic.writes << " writes, output " << tensor;
    }
  }
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

TEST(BenchTensors, AreThoseOfTheNorm) {
  TensorMaker maker{.extents = {2, 3, 5},
                    .has = {.residual = true,
                            .residualBefore = true,
                            .stream = true,
                            .gate = true,
                            .modScale = true,
                            .gateShape = TensorShape::PerFeature}};
  const TensorSet forward = maker.make();
  EXPECT_EQ(forward.inputs(), (std::vector<const void*>{forward[kX], forward[kResidual]}));
  EXPECT_EQ(forward.outputs(), (std::vector<void*>{forward[kY], forward[kResidualOut]}));
  EXPECT_EQ(&forward.output(), forward.memory[kY].get());
  EXPECT_EQ(forward[kDx], nullptr);
  EXPECT_EQ(forward.memory[kGate]->bytes(), 5 * 4);
  EXPECT_EQ(forward.memory[kModScale]->bytes(), 2 * 5 * 4);
  maker.backward = true;
  const TensorSet backward = maker.make();
  EXPECT_EQ(backward.inputs(), (std::vector<const void*>{backward[kX], backward[kDy], backward[kResidual],
                                                         backward[kResidualOut], backward[kDresidualOut]}));
  EXPECT_EQ(backward.outputs(), (std::vector<void*>{backward[kDx]}));
  EXPECT_EQ(backward[kY], nullptr);
  EXPECT_EQ(backward.memory[kDmodScale]->bytes(), 2 * 5 * 4);
  const TensorSet second = maker.make(1, backward);
  EXPECT_EQ(second[kModScale], backward[kModScale]);
  EXPECT_NE(second[kResidualOut], backward[kResidualOut]);
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
