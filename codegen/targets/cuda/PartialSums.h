// PartialSums holds the sums per feature of a task: accumulators in registers and shared memory, and how they
// reach the task's partials in memory.
//
// It knows which partials the sweeps of a slab have, and the positions of a thread, each of which has a
// feature. It does not know the terms.
#pragma once

#include "codegen/targets/cuda/SharedRuns.h"
#include "codegen/targets/cuda/SumTree.h"

namespace normc::codegen::cuda {

class PartialSums : SlabPolicy {
 public:
  PartialSums(KernelThread& thread, RunAccess& access, SharedRuns& shared, SumTree& tree)
      : SlabPolicy(thread, access), shared_(shared), tree_(tree) {}

  /// Makes accumulators for the partials that the slab's sweeps sum per feature, if it keeps them in
  /// registers: for a partial those of its accesses, then those of its ends. `firstUnit` is the first that
  /// the task walks, if it walks its units once.
  void begin(SlabOp, mlir::Value firstUnit = {});
  /// True if a task of the phase that has rows stores every partial before it adds to one, so that memory
  /// need not be cleared.
  bool storesAll(PhaseOp) const;
  /// Makes none: the sweeps of the slab add to memory.
  void beginNone();
  int64_t count() const { return int64_t(tensors_.size()); }
  bool inRegisters() const { return !sums_.empty(); }
  size_t firstOf(SweepOp sweep) const { return firstOf_.lookup(sweep); }

  void add(size_t partial, const Position&, mlir::Value);
  /// The accumulators, which loops and branches around `add` carry.
  Values& carried() { return sums_; }
  /// Runs `step(i, sums)` for i = begin, begin + stride, ... < end, in two levels if anything is summed:
  /// `sums` begin as the identities of the combiners. The loop carries the other values from step to step,
  /// too.
  Values forEachStep(Units, int64_t stride, Values identities,
                     llvm::function_ref<void(mlir::Value, Values& sums)> step, Combiners = {},
                     Values* carriedToo = nullptr);
  /// Runs `code` when the steps of a walk are done, before its last sums go to memory.
  void beforeTheLastFlush(std::function<void()> code) { beforeTheLast_ = std::move(code); }

 private:
  void flush(mlir::Value again);
  void flushAccesses(mlir::Value again);
  void flushElements();
  void flushShared(mlir::Value again);
  mlir::Value addressOf(TensorOp, const Position&);
  void addTo(TensorOp, mlir::Value address, int64_t lanes, mlir::Value sum);

  SharedRuns& shared_;
  SumTree& tree_;
  llvm::SmallVector<TensorOp> tensors_;
  llvm::DenseMap<mlir::Operation*, size_t> firstOf_;  ///< the first partial of each sweep
  Values sums_;                                       ///< [partial][position]
  std::function<void()> beforeTheLast_;
  mlir::Value firstUnit_;  ///< a flush of the step that begins there finds nothing in memory; null: none does
};

}  // namespace normc::codegen::cuda
