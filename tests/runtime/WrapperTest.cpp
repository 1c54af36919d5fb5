// Tensors of runtime/normc.hpp: every way to make one gives the same view.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "runtime/core/TensorArguments.h"
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

using Shape = std::vector<int64_t>;

Shape shapeOf(const Tensor& tensor) {
  const DLTensor view = tensor.dlpack();
  return Shape(view.shape, view.shape + view.ndim);
}

Shape stridesOf(const Tensor& tensor) {
  const DLTensor view = tensor.dlpack();
  return Shape(view.strides, view.strides + view.ndim);
}

TEST(Wrapper, ACallHasEveryTensorOfTheCApi) {
  ASSERT_EQ(std::size(host::detail::kTensorArguments), kTensorArguments.size());
  for (size_t i = 0; i < kTensorArguments.size(); ++i)
    EXPECT_EQ(host::detail::kTensorArguments[i].to, kTensorArguments[i]) << i;
}

TEST(Wrapper, MakesTensorsOfARankThatIsKnownLate) {
  float x[24] = {};
  const Shape shape = {2, 3, 4}, strides = {12, 0, 1};
  const Tensor listed(x, {2, 3, 4}), stepped(x, {2, 3, 4}, {12, 0, 1});
  for (const Tensor& tensor :
       {Tensor(x, shape), Tensor(x, shape.data(), 3), Tensor(x, DLDataType{kDLFloat, 32, 1}, shape),
        Tensor(x, DLDataType{kDLFloat, 32, 1}, shape.data(), 3)}) {
    EXPECT_EQ(shapeOf(tensor), shapeOf(listed));
    EXPECT_EQ(stridesOf(tensor), (Shape{12, 4, 1}));
    EXPECT_EQ(tensor.dlpack().data, x);
    EXPECT_EQ(tensor.dlpack().dtype.bits, 32);
  }
  EXPECT_EQ(stridesOf(Tensor(x, shape, strides)), stridesOf(stepped));
  EXPECT_EQ(stridesOf(Tensor(x, shape.data(), 3, strides.data())), stridesOf(stepped));
  EXPECT_EQ(shapeOf(Tensor(x, Shape{})).size(), 0u);
  EXPECT_FALSE(Tensor(x, Shape{}).empty()) << "a single number is not a tensor that is left out";
}

TEST(Wrapper, TakesATensorOfAnotherLibrary) {
  LayerNorm norm(6, 4);
  norm.forwardPlan(norm.forward());
  const std::vector<float> expected = norm.y;
  int64_t shape[] = {2, 3, 4}, strides[] = {12, 4, 1};
  std::vector<float> shifted(26);
  std::copy(norm.x.begin(), norm.x.end(), shifted.begin() + 2);
  const DLTensor x = {shifted.data(), {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, shape, strides, 8};
  const DLTensor y = {norm.y.data(), {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, shape, nullptr, 0};
  norm.y.assign(norm.y.size(), 0);
  Call call = norm.forward();
  call.x = x, call.y = y;
  shape[0] = 99;  // the wrapper has copied what it needs
  norm.forwardPlan(call);
  EXPECT_EQ(norm.y, expected);
  const DLTensor far = {nullptr, {kDLCUDA, 3}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  EXPECT_EQ(Tensor(far).dlpack().device.device_id, 3);
}

TEST(Wrapper, HasAsManyDimensionsAsTheLibrary) {
  LayerNorm norm(4, 6);
  Shape shape(16, 1);
  shape[14] = 4, shape[15] = 6;
  Call call = norm.forward();
  call.x = {norm.x.data(), shape}, call.y = {norm.y.data(), shape};
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }), "accepted");
  const auto thrown = [](auto make) {
    try {
      make();
      return std::string("made");
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
  };
  const std::string rule = "a Tensor has at most 16 dimensions, and one stride for each or none";
  shape.push_back(1);
  EXPECT_EQ(thrown([&] { Tensor(norm.x.data(), shape); }), rule);
  EXPECT_EQ(thrown([&] { Tensor(norm.x.data(), shape.data(), -1); }), rule);
  EXPECT_EQ(thrown([&] { Tensor(norm.x.data(), Shape{4, 6}, Shape{1}); }), rule);
  DLTensor many = {norm.x.data(), {kDLCPU, 0}, 17, {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
  EXPECT_EQ(thrown([&] { Tensor{many}; }), rule);
}

TEST(Wrapper, TakesAsManyFieldsAsTheLibraryAndTheSameOfBothStates) {
  LayerNorm norm(4, 6);
  const auto said = [&](size_t in, size_t out) {
    Call call = norm.forward();
    call.stateInFields.resize(in), call.stateOutFields.resize(out);
    try {
      norm.forwardPlan(call);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("called");
  };
  EXPECT_EQ(said(0, 0), "called");
  EXPECT_EQ(said(33, 33), "a call has at most 32 fields");
  EXPECT_EQ(said(2, 1), "stateInFields and stateOutFields have different lengths");
}

/// Returns the index of the element of `values` nearest to `value`; of two that are as near, the even one.
/// `values` ascend from 0.
uint16_t nearest(const std::vector<double>& values, double value) {
  const size_t above = std::lower_bound(values.begin(), values.end(), value) - values.begin();
  if (above == 0) return 0;
  const double down = value - values[above - 1], up = values[above] - value;
  return static_cast<uint16_t>(down < up || (down == up && above % 2 == 1) ? above - 1 : above);
}

template <typename T>
float valueOf(unsigned bits) {
  T number;
  number.bits = static_cast<uint16_t>(bits);
  return number;
}

/// Checks conversions from and to all numbers of T. `infinity`: its bits.
template <typename T>
void checkConversions(unsigned infinity, double past) {
  std::vector<double> values;
  for (unsigned bits = 0; bits < infinity; ++bits) {
    values.push_back(valueOf<T>(bits));
    ASSERT_EQ(T(valueOf<T>(bits)).bits, bits);
    ASSERT_EQ(T(-valueOf<T>(bits)).bits, bits | 0x8000u);
    ASSERT_TRUE(bits == 0 || values[bits] > values[bits - 1]) << bits;
  }
  values.push_back(past);  // what the next number would be: from half way on it is infinity
  for (unsigned bits = 0; bits < infinity; ++bits) {
    const double half = (values[bits] + values[bits + 1]) / 2;
    const float between = static_cast<float>(half);  // exact for a T with fewer bits than a float
    for (const float value :
         {std::nextafter(between, 0.0f), between, std::nextafter(between, std::numeric_limits<float>::max())})
      ASSERT_EQ(T(value).bits, nearest(values, value)) << value;
  }
  EXPECT_EQ(T(std::numeric_limits<float>::infinity()).bits, infinity);
  EXPECT_EQ(T(-std::numeric_limits<float>::infinity()).bits, infinity | 0x8000u);
  EXPECT_TRUE(std::isinf(valueOf<T>(infinity)));
  const uint32_t smallest = 0x7f800001u;  // a signalling NaN, whose upper bits are those of infinity
  float nan;
  std::memcpy(&nan, &smallest, sizeof nan);
  EXPECT_TRUE(std::isnan(float(T(nan))));
  EXPECT_TRUE(std::isnan(valueOf<T>(infinity + 1)));
  EXPECT_EQ(T().bits, 0);
}

TEST(Wrapper, RoundsToNearestBf16) { checkConversions<host::bf16>(0x7f80, 0x1p128); }

TEST(Wrapper, RoundsToNearestHalf) {
  checkConversions<host::half>(0x7c00, 0x1p16);
  EXPECT_EQ(valueOf<host::half>(0x3c00), 1);
  EXPECT_EQ(valueOf<host::half>(0x0001), 0x1p-24f);
  EXPECT_EQ(valueOf<host::half>(0x7bff), 65504);
  EXPECT_EQ(host::half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(host::half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(host::half(1e-30f).bits, 0);
  EXPECT_EQ(host::half(-1e30f).bits, 0xfc00);
}

TEST(Wrapper, MakesTensorsOf16Bits) {
  host::bf16 b[2];
  host::half h[2];
  int64_t step = 0;
  static_assert(sizeof b == 4 && sizeof h == 4);
  const DLTensor x = Tensor(b, {2}).dlpack(), y = Tensor(h, {2}).dlpack(), z = Tensor(&step, {}).dlpack();
  EXPECT_EQ(x.dtype.code, kDLBfloat);
  EXPECT_EQ(x.dtype.bits, 16);
  EXPECT_EQ(y.dtype.code, kDLFloat);
  EXPECT_EQ(y.dtype.bits, 16);
  EXPECT_EQ(z.dtype.code, kDLInt);
  EXPECT_EQ(z.dtype.bits, 64);
}

}  // namespace
}  // namespace normc::test
