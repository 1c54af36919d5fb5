// One call of a plan, checked and laid out: the input of a back end.
//
// It is on the caller's stack and owns nothing. Most of it is initialised only when it is needed, because a
// call has to be cheap.
#pragma once

#include <algorithm>
#include <array>

#include "runtime/core/TensorArguments.h"
#include "runtime/plan/Overlap.h"
#include "runtime/plan/Tensors.h"
#include "runtime/plan/Workspace.h"

namespace normc::runtime {

/// A field of the state that the entry does not write.
struct FieldCopy {
  void* to;
  const void* from;
  int64_t bytes;
};

/// The part of a call that one of several threads runs, which the host keeps in step.
struct Part {
  int32_t index, count;
  normc_barrier barrier;
  void* ctx;

  /// False if no part has this index.
  bool exists() const { return index >= 0 && index < count; }
  /// Returns the first chunk of this part, or of the part `next` behind it. Parts are runs of chunks that
  /// differ by at most one in length; with fewer chunks than parts, the first parts have one each.
  int64_t firstOf(int64_t chunks, int64_t next = 0) const {
    const int64_t at = index + next;
    return chunks / count * at + std::min(chunks % count, at);
  }
  /// Waits until all threads are here.
  void wait() const {
    if (count > 1) barrier(ctx);
  }
};

using FieldMemory = std::array<char*, kMaxFields>;

struct Call {
  explicit Call(const normc_args& args, const Part* part) : args(args), part(part) {
    for (size_t i = 0; i < kTensorCount; ++i) tensors[i] = args.*kTensorArguments[i];
  }

  const normc_args& args;
  const Part* part;  ///< null: the whole call
  std::array<const DLTensor*, kTensorCount> tensors;
  std::array<View, kTensorCount> views;
  Sizes sizes;
  Regions regions;
  LeftOut leftOut;
  /// The memory of each field of the kernel's state and saved statistics; null: it is not given.
  FieldMemory stateIn, stateOut, saved;
  /// The memory of each field of the partial that is written, or of the first of those that are added up.
  FieldMemory partial;
  int64_t partialStride = 0, partialCount = 0;  ///< of those that are added up; in elements
  std::array<normc_operand, kMaxOperands> operands;
  std::array<normc_cut, kMaxPhases> cuts;
  std::array<FieldCopy, kMaxFields> copies;
  int copyCount = 0;
};

}  // namespace normc::runtime
