// SharedRuns keeps in shared memory of a slab: the part of a run that registers do not hold (`shared`,
// Schedule.h), so a row that is too long for the registers of its threads is still read once.
//
//   access of a thread   | 0 .. tile - 1 | tile .. tile + shared - 1 |
//                           registers       shared memory, in a loop
//
// When a step begins, cp.async brings those accesses of all tensors, and every sweep reads
// them from there. A thread copies what it reads itself and waits for its own
// copies, so there is no barrier. Sums per feature of the same accesses are in shared memory, too,
// and belong to the thread. With asynchronous prefetch there is a
// ring of such places, and the copies of a step are part of its group (ReadAhead.cpp).
//
// Layout: [step][access][tensor][16 bytes of it][thread], and after that the sums in f32,
// [access][sum][16 bytes][thread] (SharedPieces.h).
//
// It knows this layout and the positions of a run. It does not know sweeps.
#pragma once

#include "codegen/targets/cuda/RunAccess.h"
#include "codegen/targets/cuda/SharedPieces.h"

namespace normc::codegen::cuda {

/// Returns the address of an element of a tensor in the global space.
mlir::Value globalAddress(KernelThread&, TensorOp, mlir::Value element);

class SharedRuns : SlabPolicy {
 public:
  SharedRuns(KernelThread& thread, RunAccess& access)
      : SlabPolicy(thread, access), pieces_(thread, thread.threads()) {}

  /// Begins a slab: finds the tensors whose runs are there, none unless sweeps `keep` their runs, and clears
  /// `sums` sums per feature.
  void begin(SlabOp, bool keep, int64_t sums);
  bool hasRuns() const { return !tensors_.empty(); }
  bool has(TensorOp t) const { return llvm::is_contained(tensors_, t); }
  int64_t reads() const { return int64_t(tensors_.size()); }
  bool hasSums() const { return bool(sumsAt_); }

  /// Runs `step` for all accesses in shared memory, `together` at a time: in a loop while every thread has
  /// one, then for those that may be behind the end. `running` are sums, in levels if there are many
  /// accesses.
  Values forEach(int64_t together, Values running, Combiners,
                 llvm::function_ref<void(llvm::ArrayRef<Position>, Values&)> step);

  /// Begins the copies of a run of the step with this number. Accesses that cp.async cannot copy (two bytes,
  /// or not aligned) go through registers.
  void copy(const Replica&, mlir::Value step);
  /// Lets `load` read the run of the step.
  void beginStep(mlir::Value step) { run_ = runOf(step); }
  /// Returns an access of the step's run in the statistics type; zero unless the condition holds.
  mlir::Value load(TensorOp, const Position&, mlir::Value condition);

  mlir::Value sum(size_t which, const Position&);
  void setSum(size_t which, const Position&, mlir::Value);

 private:
  mlir::Value runOf(mlir::Value step);

  SharedPieces pieces_;
  llvm::SmallVector<TensorOp> tensors_;
  int64_t sums_ = 0;
  mlir::Value run_, sumsAt_;  ///< addresses of this thread's parts: of the step's run, of the sums
};

}  // namespace normc::codegen::cuda
