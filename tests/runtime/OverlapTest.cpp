// A call must not write memory that it uses otherwise: the decision is that of a comparison of all bytes.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

const std::string kOverlaps =
    "INVALID_ARGUMENT: y and x overlap but are not the same memory with the same strides; make them the same "
    "or apart";

struct Cuboid {
  float* data;
  std::vector<int64_t> shape, strides;

  std::set<const float*> elements() const {
    std::set<const float*> all;
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        for (int64_t k = 0; k < shape[2]; ++k)
          all.insert(data + (i ? i * strides[0] : 0) + (j ? j * strides[1] : 0) + k);
    return all;
  }
  bool isSame(const Cuboid& other) const {
    return data == other.data && (shape[0] == 1 || strides[0] == other.strides[0]) &&
           (shape[1] == 1 || strides[1] == other.strides[1]);
  }
  Tensor tensor() const { return {data, shape, strides}; }
};

class Overlaps : public testing::Test {
 protected:
  std::string call(const Cuboid& x, const Cuboid& y) const {
    Call call;
    call.x = x.tensor(), call.y = y.tensor();
    return refusal([&] { plan_(call); });
  }
  const Plan plan_{standard(), "probe:forward@f32[*x*x*]"};
  std::vector<float> buffer_ = std::vector<float>(1000);
};

TEST_F(Overlaps, AreFoundExactly) {
  std::mt19937_64 random(3);
  const auto below = [&](int64_t count) { return static_cast<int64_t>(random() % count); };
  const int64_t extremes[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX / 4, 0, 1};
  const auto stride = [&](int64_t size) { return size == 1 ? extremes[below(6)] : below(41) - 20; };
  int apart = 0, interleaved = 0, overlapping = 0;
  for (int i = 0; i < 200000; ++i) {
    const std::vector<int64_t> shape = {1 + below(4), 1 + below(4), 1 + below(5)};
    const auto cuboid = [&] {
      return Cuboid{buffer_.data() + 400 + below(100), shape, {stride(shape[0]), stride(shape[1]), 1}};
    };
    const Cuboid x = cuboid();
    Cuboid y = cuboid();
    if (below(4) == 0) y.strides = x.strides;
    if (y.elements().size() < static_cast<size_t>(shape[0] * shape[1] * shape[2])) continue;
    const std::string result = call(x, y);
    if (has(result, "its strides make elements share memory")) continue;  // not all that are legal are taken
    const std::set<const float*> ofX = x.elements(), ofY = y.elements();
    bool shares = false;
    for (const float* element : ofY) shares |= ofX.contains(element);
    const bool inRange = *ofX.begin() <= *ofY.rbegin() && *ofY.begin() <= *ofX.rbegin();
    ASSERT_EQ(result, shares && !x.isSame(y) ? kOverlaps : "accepted")
        << "shape " << shape[0] << " " << shape[1] << " " << shape[2] << ", y " << y.data - x.data
        << " behind x, strides " << x.strides[0] << " " << x.strides[1] << " and " << y.strides[0] << " "
        << y.strides[1];
    ++(shares ? overlapping : inRange ? interleaved : apart);
  }
  EXPECT_GT(apart, 1000);
  EXPECT_GT(interleaved, 1000);
  EXPECT_GT(overlapping, 1000);
}

TEST_F(Overlaps, AreNoneInTheGapsOfAnotherPitch) {
  // Rows of x are 16 apart, those of y 32: before, only equal pitches were known to interleave.
  float* const b = buffer_.data();
  const Cuboid x{b, {1, 6, 8}, {INT64_MAX, 16, 1}};
  EXPECT_EQ(call(x, {b + 8, {1, 6, 8}, {INT64_MIN, 32, 1}}), "accepted");
  EXPECT_EQ(call(x, {b + 7, {1, 6, 8}, {INT64_MIN, 32, 1}}), kOverlaps);
}

TEST(Overlap, IsNoneOfABufferInTheGapsOfATensor) {
  // `scale` and `saved` lie between the rows of y.
  LayerNorm norm(4, 6);
  std::vector<double> memory(400);
  float* const b = reinterpret_cast<float*>(memory.data());
  Call call = norm.forward();
  call.y = {b, {4, 6}, {100, 1}};
  call.saved = {b + 108, norm.saved.size()};
  call.scale = {b + 206, {6}};
  ASSERT_LE(norm.saved.size(), 90 * sizeof(float));
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }), "accepted");
  call.scale = {b + 205, {6}};
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }),
            "INVALID_ARGUMENT: y is written and overlaps scale; they must lie in different memory");
}

TEST(Overlap, OfYAndAnXOfAnotherTypeIsRefused) {
  package::Kernel kernel = layerNorm("forward");
  kernel.problem = "layer_norm:forward@f16[*x*]{y=bf16}";
  kernel.parts.data = DType::F16, kernel.parts.output = DType::BF16;
  for (package::Operand& operand : kernel.operands) {
    if (operand.name == "x") operand.type = DType::F16;
    if (operand.name == "y") operand.type = DType::BF16;
  }
  const Plan plan(openInMemory(packageOf(kernel), context()), kernel.problem);
  LayerNorm norm(4, 6);
  Call call = norm.forward();
  call.x = {reinterpret_cast<host::half*>(norm.x.data()), {4, 6}};
  call.y = {reinterpret_cast<host::bf16*>(norm.x.data()), {4, 6}};
  EXPECT_EQ(refusal([&] { plan(call); }),
            "INVALID_ARGUMENT: y is written and overlaps x; they must lie in different memory");
}

}  // namespace
}  // namespace normc::test
