// How a call is cut into chunks, and what it needs scratch memory for.
#pragma once

#include <array>

#include "runtime/package/Manifest.h"

namespace normc::runtime {

/// One cut per phase, from the problem and the schedule alone. False if a size is too large to count.
bool computeCuts(const KernelInfo& kernel, const Sizes& sizes, normc_cut* cuts);

/// Which outputs the caller does not want; the kernel writes them to scratch.
struct LeftOut {
  std::array<bool, kTensorCount> tensors = {};
  bool saved = false, stateOut = false;

  /// Everything that may be left out at all.
  static LeftOut everything() {
    LeftOut all;
    all.tensors[kDx] = all.tensors[kDscale] = all.tensors[kDbias] = all.saved = all.stateOut = true;
    return all;
  }
};

/// A block of scratch for one operand. Not initialised: a call has an array of these on its stack.
struct Scratch {
  static constexpr int64_t kNone = -1;
  int64_t offset;
  int64_t taskStride;  ///< in elements
};

/// Finds a place for each operand that needs one (`scratch` has one entry per operand) and returns the bytes
/// used.
int64_t layOutWorkspace(const KernelInfo& kernel, const Sizes& sizes, const normc_cut* cuts,
                        const LeftOut& leftOut, Scratch* scratch);

}  // namespace normc::runtime
