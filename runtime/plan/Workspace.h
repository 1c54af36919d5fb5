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
    for (const TensorInfo& each : kTensorTable) all.tensors[each.tensor] = each.mayBeLeftOut();
    all.saved = all.stateOut = true;
    return all;
  }
};

/// A block of scratch for one operand. Not initialised: a call has an array of these on its stack.
struct Scratch {
  static constexpr int64_t kNone = -1;
  int64_t offset;
  int64_t taskStride;  ///< in elements
};

/// Where scratch of a host's kernel lies within a page, seen from x. A processor tells addresses apart by their place in a
/// page before it knows them whole, so vectors that begin where x begins share its sets of the first-level cache, and a
/// load waits for an unrelated store just before it. Vectors of at least `kApart` bytes begin half a page behind x and,
/// every second one, a quarter further. Results do not depend on it.
inline constexpr int64_t kPage = 4096, kBehindX = kPage / 2, kApart = kPage / 4;

/// Bytes beyond `needed` that a workspace should have, since it may begin anywhere.
int64_t spareBytes(const KernelInfo& kernel, int64_t needed);

/// How many of the spare bytes to leave out at its beginning: scratch lies as above then where `given` bytes are enough,
/// and at a multiple of kAlignment in any case. `x` may be null.
int64_t bytesToSkip(const KernelInfo& kernel, const void* workspace, int64_t given, int64_t needed, const void* x);

/// Finds a place for each operand that needs one (`scratch` has one entry per operand) and returns the bytes
/// used.
int64_t layOutWorkspace(const KernelInfo& kernel, const Sizes& sizes, const normc_cut* cuts,
                        const LeftOut& leftOut, Scratch* scratch);

/// Bytes that are enough for every call of these sizes, or of fewer segments or rows, that the kernel serves, whatever it
/// leaves out and wherever the workspace begins; 0 if it serves none, kHuge if no memory holds it. More than a layout of
/// the same sizes may use: fewer rows may be cut into more chunks.
int64_t enoughWorkspace(const KernelInfo& kernel, const Sizes& sizes);

}  // namespace normc::runtime
