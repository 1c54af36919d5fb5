// How a call is cut into chunks, and the layout of its scratch memory.
#pragma once

#include <array>

#include "runtime/abi/MemoryUnits.h"
#include "runtime/abi/Partition.h"
#include "runtime/package/Package.h"

namespace normc::runtime {

/// Which outputs the caller does not want; the kernel writes them to scratch. And which inputs it does not
/// give; the kernel reads a row of zeros.
struct LeftOut {
  std::array<bool, kTensorCount> tensors = {};
  bool saved = false, stateOut = false;

  /// Returns all that may be left out.
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

/// Returns the bytes of the row of zeros that stands for an input of this call; 0 if the operand is none that
/// may be left out, or is given. All rows of the tensor are this one: its strides are 0.
int64_t bytesOfZeros(const Kernel& kernel, const Operand& operand, const Sizes& sizes,
                     const LeftOut& leftOut);

/// Offsets of the scratch of a CPU kernel within a page, relative to x. Processors compare the offsets within
/// a page before they know the whole address. So vectors at the offset of x share its sets of the first-level
/// cache, and a load waits for an unrelated store just before it. Vectors of at least `kApart` bytes begin
/// half a page behind x, and every second one a quarter further. Results do not depend on it.
inline constexpr int64_t kBehindX = kPage / 2;

/// Returns the bytes that a workspace should have beyond `needed`, because it may begin at any address.
int64_t spareBytes(const Kernel& kernel, int64_t needed);

/// Returns the number of bytes to skip at the beginning of the workspace: scratch then has the offsets above
/// if `given` bytes are enough, and begins at a multiple of kAlignment in any case. `x` may be null.
int64_t bytesToSkip(const Kernel& kernel, const void* workspace, int64_t given, int64_t needed,
                    const void* x);

/// Gives each operand that needs scratch an offset (`scratch` has one entry for each operand), and returns
/// the bytes used.
int64_t layOutWorkspace(const Kernel& kernel, const Sizes& sizes, const normc_cut* cuts,
                        const LeftOut& leftOut, Scratch* scratch);

/// Returns bytes that are enough for every call of these sizes, or of fewer segments or rows, that the kernel
/// serves, with any outputs left out and a workspace at any address; 0 if it serves none, kHuge if no memory
/// holds it. A layout of the same sizes may use less: fewer rows may be cut into more chunks.
int64_t enoughWorkspace(const Kernel& kernel, const Sizes& sizes);

}  // namespace normc::runtime
