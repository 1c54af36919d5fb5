// How the parts of a reduction that threads have become its result: lanes, warps, the block, and the blocks
// of a cluster or of the grid that share the unit.
//
//   lanes     shuffles (SumTree.cpp)
//   block     a part for each warp of a team, or for each span, in shared memory (SumTree.cpp)
//   cluster   each block sends its parts to the shared memory of all blocks (SumOverCluster.cpp)
//   grid      each block writes its parts to workspace, between grid barriers (SumOverGrid.cpp)
//
// The schedule fixes the order of every sum, so all threads that get a sum get the same bits. Each sum has a
// combiner (add, max), by which parts are combined at every level. A SumTree knows the launch and where its
// own buffers are. It does not know what is summed, nor from which tensors.
#pragma once

#include "codegen/targets/cuda/ClusterMeeting.h"
#include "codegen/targets/cuda/GridBarrier.h"
#include "codegen/targets/cuda/KernelThread.h"

namespace normc::codegen::cuda {

class SumTree {
 public:
  explicit SumTree(KernelThread&);

  /// Begins a step that blocks of the grid share. `turn` is 0, 1, 0, ... by step of a line and chooses the
  /// buffers that are written; null where no block needs it.
  void beginStep(mlir::Value turn);

  /// Makes the sums of teams above a warp use two places in turn, so that a thread may begin the next step
  /// while slower ones still read the parts of this one. A step must have one such exchange.
  void alternate(bool alternates) { alternates_ = alternates && exchanges_; }
  bool alternates() const { return alternates_; }

  /// Makes the first exchange of a cluster wait for the barrier that the phase begins with.
  void waitInTheFirstMeeting() { meeting_->waitInTheFirst(); }

  //===-- Sums: every thread of the task takes part, and gets the sums of its unit ------===//

  /// Replaces the parts of the sums of a line's runs, or of a block's rows, by the sums.
  void overRun(llvm::MutableArrayRef<mlir::Value> sums, const Place&, Combiners = {});
  /// Replaces the parts by the sums over `team` neighbouring threads of the block.
  void overTeam(llvm::MutableArrayRef<mlir::Value> sums, int64_t team, Combiners = {});
  /// Replaces the parts of vectors of columns by the sums over all units of the task. The thread's vector
  /// begins at `feature`, and exists if `inside`. Over a grid the place's unit is computed again: the
  /// addresses of this sweep's rows would occupy registers during the barrier.
  void overUnits(llvm::MutableArrayRef<mlir::Value> sums, Place&, mlir::Value feature, mlir::Value inside,
                 Combiners = {});

  //===-- Exchange of vectors between the spans of a block -----------------------------===//

  /// Returns the next of `count` buffers in turn, which all exchanges of the block share. It has `elements`
  /// when it is first asked for.
  mlir::Value nextBuffer(int64_t elements, int64_t count);
  mlir::Value nextBuffer() { return nextBuffer(k_.s.vector * k_.s.threads, 2); }
  /// Stores the thread's vector, [lane][thread]: neighbouring threads access neighbouring words, so there are
  /// no bank conflicts.
  void store(mlir::Value buffer, mlir::Value vector);
  /// Returns what the thread at this place of another unit stored.
  mlir::Value load(mlir::Value buffer, const Place&, int64_t unit);
  /// Returns the sum of what the threads at this place of their span stored, over all units of the block or
  /// every `stride`-th.
  mlir::Value total(mlir::Value buffer, const Place&, int64_t stride = 1, Combiner = Combiner::Add);

  //===-- Barriers of all threads of the task: of the block, the cluster, or its blocks of the grid ---===//

  void taskBarrier();
  /// The halves of the grid's, with the barriers of the block that they need.
  void arriveAtGrid();
  void waitForGrid();

 private:
  /// Returns the combiner of sum i; without combiners all are added.
  static Combiner of(Combiners combiners, size_t i) {
    return combiners.empty() ? Combiner::Add : combiners[i];
  }
  mlir::Value overLanes(mlir::Value, int64_t team, Combiner);
  void overSpans(llvm::MutableArrayRef<mlir::Value> sums, const Place&, Combiners);
  mlir::Value overSpansOfWarp(mlir::Value, const Place&, Combiner);
  mlir::Value unitInBlock(const Place&);
  void runOverCluster(llvm::MutableArrayRef<mlir::Value> sums, Combiners);
  void unitsOverCluster(llvm::MutableArrayRef<mlir::Value> sums, const Place&, Combiners);
  void runOverGrid(llvm::MutableArrayRef<mlir::Value> sums, Combiners);
  void unitsOverGrid(llvm::MutableArrayRef<mlir::Value> sums, Place&, mlir::Value feature, mlir::Value inside,
                     Combiners);

  KernelThread& k_;
  Loops& l_;
  AccessLowering& f_;
  std::optional<GridBarrier> gridBarrier_;  ///< if the task has several blocks of the grid
  std::optional<ClusterMeeting> meeting_;   ///< if it has several of a cluster
  mlir::Value turn_;
  mlir::Value
      exchanges_;  ///< address of the number of exchanges of a team, mod 2; LLVM keeps it in a register
  bool alternates_ = false;
  int64_t exchanged_ = 0;  ///< sums that blocks have exchanged over the grid in this step
  mlir::Value buffers_[2];
  int64_t flip_ = 0;
};

}  // namespace normc::codegen::cuda
