// Elementwise loops as one writes them by hand around a norm: each reads and writes every element once.
//
// Loops.cpp is compiled once for each instruction set, in a namespace of its own; runRows() takes the widest
// that the processor has.
#pragma once

#include <cstdint>

namespace normc::bench::apart {

/// a, b, c are tensors like x; u, w vectors of a segment; + is a sum over the rows of a segment.
enum class Op : uint8_t {
  Add,              ///< a + b
  Silu,             ///< silu(a)
  SiluGrad,         ///< a silu'(b)
  Relu,             ///< max(a, 0)
  ReluGrad,         ///< a where b is above 0, else 0
  AddRelu,          ///< max(a + b, 0)
  GateSilu,         ///< a silu(b)
  GateSiluGrad,     ///< a silu(c), a b silu'(c)
  GateSigmoid,      ///< a sigmoid(b)
  GateSigmoidGrad,  ///< a sigmoid(c), a b sigmoid'(c)
  GateAdd,          ///< u a + b
  GateAddGrad,      ///< h = a + b, h u; + h c
  Modulate,         ///< (offset + u) a + w
  ModulateGrad,     ///< a (offset + u); + a b, + a
};

/// How many tensors, vectors, outputs and sums an operation has.
struct Counts {
  int in, vectors, out, sums;
};
constexpr Counts countsOf(Op op) {
  switch (op) {
    case Op::Silu:
    case Op::Relu:
      return {1, 0, 1, 0};
    case Op::Add:
    case Op::SiluGrad:
    case Op::ReluGrad:
    case Op::AddRelu:
    case Op::GateSilu:
    case Op::GateSigmoid:
      return {2, 0, 1, 0};
    case Op::GateSiluGrad:
    case Op::GateSigmoidGrad:
      return {3, 0, 2, 0};
    case Op::GateAdd:
      return {2, 1, 1, 0};
    case Op::GateAddGrad:
      return {3, 1, 2, 1};
    case Op::Modulate:
      return {1, 2, 1, 0};
    case Op::ModulateGrad:
      return {2, 1, 1, 2};
  }
  return {};
}

/// A loop bound to compact memory of f32, or of bf16.
struct Loop {
  Op op = Op::Add;
  bool bf16 = false;
  bool streaming = false;  ///< stores go past the caches
  const void* in[3] = {};
  const void* vectors[2] = {};  ///< [segments, features]
  void* out[2] = {};
  int64_t features = 0, rowsOfSegment = 0;
  float offset = 1;
};

/// True if all rows begin where a store past the caches may: a multiple of a cache line.
bool mayStream(const Loop&);

/// Runs `rows` rows from `row` on. Adds to `sums`, an array of `features` for each sum; where the operation
/// has sums, all rows belong to one segment.
void runRows(const Loop&, int64_t row, int64_t rows, float* const sums[2]);

}  // namespace normc::bench::apart
