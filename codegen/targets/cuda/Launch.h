// How a phase is launched: its blocks, what they hold in shared memory, and the folds that threads divide.
#pragma once

#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Traits.h"

namespace normc::codegen::cuda {

/// Returns the folds of a slab over features that its threads may divide (TeamFolds.cpp): they merge, go
/// along the same chunks, and need nothing that the slab computes. Empty if another fold of chunks cannot be
/// divided.
llvm::SmallVector<FoldOp> foldsToDivide(SlabOp);

/// How a phase is launched: blocks of `threads` threads and `columns` features (0: all), registers for
/// `blocks` of them on a multiprocessor, and `cluster` or `grid` blocks to a task. In a phase over
/// features that folds chunks, a feature has `slices` threads.
struct Launch {
  int64_t threads = 256, columns = 0, blocks = 0, cluster = 1, grid = 1, slices = 1;
  int64_t shared =
      0;  ///< bytes of dynamic shared memory, for prefetched runs and those that do not fit registers
};
Launch launchOf(PhaseOp, const Schedule&);

/// Returns how many blocks a device of the architecture holds at once, so that they may wait for each other,
/// and how many tasks these are.
int64_t blocksTogether(const Schedule&, const Arch&);
int64_t tasksTogether(const Schedule&, const Arch&);

/// Returns the units (rows, runs) that a block of the phase processes in one step.
int64_t unitsPerStep(PhaseOp, const Schedule&);

/// True if each warp of the blocks that share a line of this kernel may estimate its shift alone: it reads
/// nothing ahead, and lines are long enough.
bool warpsProbe(const KernelTraits&, const Schedule&);

/// Bytes that one asynchronous copy brings, and of an mbarrier.
inline constexpr int64_t kCopiedBytes = 16, kMbarrierBytes = 8;
/// Returns the vectors of features that a line reads in each row and that are the same for all rows: scale
/// and bias. Empty for several groups, and for rows of channels first.
llvm::SmallVector<TensorOp> vectorsOfAllRows(SlabOp);
/// Returns the bytes of these for a feature.
int64_t heldBytes(SlabOp);
/// Return bytes of the dynamic shared memory of a block that reads `reads` X-sized tensors, in their order
/// there: copies of tiles (ReadAhead.h), then what runs have besides their tile, then its `partials` sums per
/// feature (SharedRuns.h), then vectors of `featureBytes` for a feature (SharedVectors.h).
int64_t copiedBytes(const Schedule&, int64_t reads);
int64_t sharedRunBytes(const Schedule&, int64_t reads, int64_t dataBytes);
int64_t sharedSumBytes(const Schedule&, int64_t partials);
int64_t sharedVectorBytes(const Schedule&, int64_t featureBytes);
/// Returns the bytes of shared memory that an entry of the kernel declares at most: what the threads of a
/// block, and the blocks of a cluster, tell each other.
int64_t staticBytes(const KernelTraits&, const Schedule&);
/// Returns those of a slab before its vectors.
int64_t runBytes(SlabOp, const Schedule&);
/// Returns all of these bytes for the phase with the kernel's lines.
inline int64_t dynamicBytes(const KernelTraits& traits, const Schedule& s) {
  return copiedBytes(s, traits.reads) + sharedRunBytes(s, traits.reads, traits.dataBytes) +
         sharedSumBytes(s, traits.partials) + sharedVectorBytes(s, traits.heldBytes);
}

/// Returns the X-sized tensors that every step of the slab reads.
llvm::SmallVector<TensorOp> readAlways(SlabOp);

}  // namespace normc::codegen::cuda
