// One call of a plan, checked and laid out: the input of a back end.
//
// It is on the caller's stack and owns nothing. Most of it is initialised only when it is needed, because a
// call has to be cheap.
#pragma once

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

using FieldMemory = std::array<char*, kMaxFields>;

struct Call {
  explicit Call(const normc_args& args) : args(args) {
    for (size_t i = 0; i < kTensorCount; ++i) tensors[i] = args.*kTensorArguments[i];
  }

  const normc_args& args;
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
