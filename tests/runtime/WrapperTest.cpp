// Tensors of runtime/normc.hpp: every way to make one gives the same view.
#include <stdexcept>

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

}  // namespace
}  // namespace normc::test
