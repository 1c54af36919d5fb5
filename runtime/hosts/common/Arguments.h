// One call of a norm over tensors that a host has made: hosts whose operators take all results as arguments
// (XLA, tvm-ffi) hand them over in one order, which this file defines.
//
//   inputs   x dy scale bias mask around... saved... partials state...
//   results  y (or codes) dx around... saved... dscale dbias state... partial
//
// An entry has those of them that its plan reads or can write: a backward reads saved statistics and a
// forward makes them; scale, bias and the state as the norm has them; mask if the request has one; partials
// and a partial where the entry is one of those for statistics over ranks. `around` are the tensors around
// the norm that the plan reads, or can write (Around.h).
#pragma once

#include <array>
#include <span>

#include "runtime/hosts/common/Registry.h"

namespace normc::hosts {

/// True if the entry takes dy.
bool takesGradient(Entry);

/// Which tensors a plan takes and makes, as counts.
struct Operands {
  size_t inputs = 0, outputs = 0;
  size_t firstParameter = 0;  ///< x, and dy, stand before it
  size_t firstRow = 0;        ///< scale and bias stand before it; then what has a value for each row
  bool sums = false;          ///< an output adds over rows, or is a part of the state

  explicit Operands(const Prepared&);
};

/// A partial is a buffer of any type that has its bytes.
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

  /// Returns a tensor of rows. Where x has features alone it becomes one row.
  const DLTensor* ofRows(DLTensor&);
  normc_sizes sizes() const;

  const Prepared& plan_;
  normc_args args_ = {};
  Fields stateIn_ = {}, stateOut_ = {}, saved_ = {};
  const DLTensor *partial_ = nullptr, *partials_ = nullptr;
  struct OneRow {
    int64_t shape[2], strides[2];
  };
  std::array<OneRow, 4 + kAround.size()> oneRows_;  ///< for x, dy, y or dx, mask, and what is around
  size_t oneRowsUsed_ = 0;
  bool oneRow_ = false;  ///< x has features alone
};

}  // namespace normc::hosts
