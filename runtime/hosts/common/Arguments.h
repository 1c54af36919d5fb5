// One call of a norm over tensors that a host has made: hosts whose operators take all results as arguments
// (XLA, tvm-ffi) hand them over in one order, which this file defines.
//
//   forward          x     scale bias mask           state...  ->  y   saved...      state...
//   infer            x     scale bias mask           state...  ->  y
//   backward         x dy  scale bias mask saved...  state...  ->  dx  dscale dbias  state...
//   infer_backward   x dy  scale bias mask           state...  ->  dx  dscale dbias
//
// scale, bias, dscale and dbias are there if the plan reads or can write them, and mask if the request has
// one. State is the fields that the plan reads, and, as results, the fields that it writes.
#pragma once

#include <array>
#include <span>

#include "runtime/hosts/common/Registry.h"

namespace normc::hosts {

inline bool takesGradient(Entry entry) { return entry == Entry::Backward || entry == Entry::InferBackward; }

/// Which tensors a plan takes and makes, as counts.
struct Operands {
  size_t inputs = 0, outputs = 0;
  size_t firstParameter = 0;  ///< x, and dy, stand before it
  size_t firstRow = 0;        ///< scale and bias stand before it; then what has a value for each row
  bool sums = false;          ///< an output adds over rows, or is a part of the state

  explicit Operands(const Prepared&);
};

class Arguments {
 public:
  /// Distributes the tensors over the arguments of the plan. The call keeps pointers to them: a host may
  /// change their addresses between two runs, and nothing else. An x with features alone becomes one row.
  /// Throws std::invalid_argument if their number is wrong; shapes and types are checked by each run.
  Arguments(const Prepared&, std::span<DLTensor> inputs, std::span<DLTensor> outputs);
  Arguments(const Arguments&) = delete;

  size_t workspaceBytes() const;
  /// Executes the call. Throws host::Error if a tensor is wrong; nothing is written then.
  void run(void* workspace, size_t workspaceBytes, void* stream = nullptr);

 private:
  using Fields = std::array<const DLTensor*, NORMC_MAX_FIELDS>;

  const DLTensor* elements(DLTensor&);
  normc_sizes sizes() const;

  const Prepared& plan_;
  normc_args args_ = {};
  Fields stateIn_ = {}, stateOut_ = {}, saved_ = {};
  struct OneRow {
    int64_t shape[2], strides[2];
  };
  std::array<OneRow, 3> oneRows_;  ///< for x, dy, and y or dx
  size_t oneRowsUsed_ = 0;
};

}  // namespace normc::hosts
