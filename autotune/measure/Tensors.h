// The tensors that the contestants of a race share: which there are follows from the table of operands.
//
// What a kernel's time could depend on beside its bytes is the same for all: values are about N(0,1), the
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

/// The memory of each tensor of a call, compact. Sets may share some.
struct TensorSet {
  std::array<std::shared_ptr<const Held>, kTensorCount> memory;  ///< null where there is no such tensor

  /// Returns where a tensor begins; null where there is none.
  void* operator[](Tensor tensor) const { return memory[tensor] ? memory[tensor]->data() : nullptr; }
  /// Returns where the X-sized tensors begin that a call reads.
  std::vector<const void*> inputs() const;
  /// Returns the X-sized tensor that a call writes.
  const Held& output() const;
};

/// Makes sets of tensors. Those of a backward have all that its forward reads, too.
struct TensorMaker {
  DType data = DType::F32, params = DType::F32;
  Extents extents;
  Has has;
  bool backward = false;
  const gate::CudaDevice* device = nullptr;  ///< null: of the host
  uint64_t scatter = 0;  ///< unless 0, where the pages of a host's memory lie (scattered())

  /// Returns a set with X-sized tensors of its own; it shares all others with `first`, if that has them.
  TensorSet make(int number = 0, const TensorSet& first = {}) const;

 private:
  Held tensor(const TensorInfo&, uint64_t seed) const;
};

/// One set of the host, with scale and bias.
struct Tensors : TensorSet {
  /// `gradients`: those of a backward.
  Tensors(DType data, const Shape&, bool gradients);

  DType data, params;
  Shape shape;
  /// Of an X-sized tensor.
  int64_t bytes() const { return shape.elements() * normc::bytes(data); }
};

}  // namespace normc::measure
