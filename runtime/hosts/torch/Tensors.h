// Tensors of torch as the runtime sees them, over torch's stable C functions alone: one library serves every
// torch from 2.10 on.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <span>

#include "runtime/hosts/common/Registry.h"

namespace normc::hosts {

using ::torch::stable::Tensor;

/// How a call sees the dimensions of x.
struct Axes {
  bool channelsFirst = false;  ///< in memory
  bool permuted = false;       ///< x has its channels in dimension 1, and in memory they are last
  int features = 1;            ///< the number of trailing dimensions that are features; of channels: 1
};

/// Returns the data type of a tensor. Throws for a type that no norm takes.
DLDataType typeOf(const Tensor&);
/// Returns the data type of x. Throws for a type that a norm takes beside x alone, e.g. of a mask.
DLDataType dataTypeOf(const Tensor& x);
DLDevice deviceOf(const Tensor&);

/// Returns how a norm sees x. Throws std::invalid_argument if the shape of x does not fit the norm.
Axes axesOf(const Tensor& x, const NormText&);
/// True if the strides of a tensor are those that a kernel takes: contiguous features (or rows of a channel),
/// and one stride through all rows.
bool isWalkable(const Tensor&, const NormText&, const Axes&);
/// Returns the tensor, or a contiguous copy with the same axes if its strides are not walkable.
Tensor walkable(const Tensor&, const NormText&, const Axes&);

/// Returns a shape as text: "[2, 24]".
std::string shapeText(std::span<const int64_t>);

/// A tensor of the shape of x, contiguous in the same order of axes, of a type: that of x.
Tensor likeInput(const Tensor& x, const Axes&);
Tensor likeInput(const Tensor& x, const Axes&, DLDataType);
Tensor emptyOf(std::span<const int64_t> shape, const Tensor& deviceOfThis, DLDataType);
Tensor emptyLike(const Tensor&);

/// A view for one call. It holds its sizes, so it must not be moved while it is used. Throws
/// std::invalid_argument for a tensor of more than NORMC_MAX_DIMS dimensions.
class View {
 public:
  View() {}
  View(const View&) = delete;
  /// Views x, y, dy or dx.
  const DLTensor* elements(const Tensor&, const Axes&);
  /// Views a contiguous tensor as one dimension.
  const DLTensor* flat(const Tensor&);
  /// Views a contiguous tensor as it is, behind `leading` dimensions of size 1.
  const DLTensor* plain(const Tensor&, int leading = 0);

 private:
  void begin(const Tensor&);
  DLTensor view_;
  std::array<int64_t, NORMC_MAX_DIMS> shape_, strides_;
};

/// Returns the segments and rows of a call.
normc_sizes sizesOf(const Tensor& x, const NormText&, const Axes&);

}  // namespace normc::hosts
