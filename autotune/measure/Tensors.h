// The tensors that the contestants of a race share: which there are follows from the table of operands.
//
// All kernels get the same data, since their time could depend on them: values are about N(0,1), the
// scale is about 1, none is subnormal.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "autotune/measure/Memory.h"
#include "dsl/StateFields.h"

namespace normc::measure {

/// The sizes of a tensor like x, and how it lies in memory.
struct Shape {
  int64_t segments = 1, rows = 0, features = 0;
  Layout layout = Layout::FeaturesLast;

  int64_t totalRows() const { return segments * rows; }
  int64_t elements() const { return totalRows() * features; }
  /// "128 x 768", and "32 x 256 x 784, channels first" as it lies in memory.
  std::string text() const;
};

/// The compact memory of each tensor of a call. Sets may share tensors.
struct TensorSet {
  std::array<std::shared_ptr<const Held>, kTensorCount> memory;  ///< null if there is no such tensor

  /// Returns the address of a tensor; null if there is none.
  void* operator[](Tensor tensor) const { return memory[tensor] ? memory[tensor]->data() : nullptr; }
  /// Returns the addresses of the X-sized tensors that a call may read.
  std::vector<const void*> inputs() const;
  /// Returns the addresses of those that it writes, y or dx first.
  std::vector<void*> outputs() const;
  /// Returns the first of these.
  const Held& output() const;
  /// Returns the bytes of the smallest of all of them.
  int64_t leastBytes() const;

 private:
  friend struct TensorMaker;
  std::vector<Tensor> inputs_, outputs_;
};

/// Makes sets of tensors. Sets of a backward also have all tensors that its forward reads.
struct TensorMaker {
  ElementTypes types;
  Extents extents;
  Has has;
  bool backward = false;
  const gate::CudaDevice* device = nullptr;  ///< null: the host
  uint64_t scatter = 0;  ///< seed of the page order of host memory (scattered()); 0: unchanged

  /// Returns a set with X-sized tensors of its own; it shares all others with `first`, if that has them.
  TensorSet make(int number = 0, const TensorSet& first = {}) const;

 private:
  Entry entry() const { return backward ? Entry::Backward : Entry::Forward; }
  bool makes(const TensorInfo&) const;
  Held tensor(const TensorInfo&, uint64_t seed) const;
};

/// One set on the host, with scale and bias.
struct Tensors : TensorSet {
  /// `gradients`: also makes the tensors of a backward.
  Tensors(DType data, const Shape&, bool gradients);

  DType data, params;
  Shape shape;
  /// Returns the bytes of an X-sized tensor.
  int64_t bytes() const { return shape.elements() * normc::bytes(data); }
};

}  // namespace normc::measure
