// How a thread accesses a run: which elements its accesses have, and how they are loaded.
//
//   aligned     every run begins where accesses may, or is accessed by elements (RunAccess.cpp)
//   peeled      each run has a head and a tail of single elements (PeeledRuns.cpp)
//   congruent   a task takes rows that begin alike, and their heads are equal (CongruentRuns.cpp)
//
// The access of a phase is chosen once. It knows where runs are in memory and which unit of the phase a
// thread has. It does not know what is computed from the elements, nor where their values stay.
#pragma once

#include <memory>

#include "codegen/targets/cuda/KernelThread.h"

namespace normc::codegen::cuda {

/// The units of a task, or of a part of it.
struct Units {
  mlir::Value begin, end;
};

/// The runs of the slab that is lowered: each begins at index `begin` of the contiguous axis.
struct Run {
  mlir::Value begin, width;
  Place place;
};

/// An access along the run: its first element, and whether it is inside.
struct Position {
  mlir::Value offset, inside;  ///< inside null: always. The offset is that of an access inside in any case
  int64_t index = -1;          ///< of the tile; -1: in a loop
  bool single = false;         ///< one element, at an end of a peeled run
  mlir::Value slot = {};       ///< of the thread's accesses in shared memory; null: it is not there
};

class RunAccess {
 public:
  static std::unique_ptr<RunAccess> make(KernelThread&, const Run&);
  virtual ~RunAccess() = default;

  //===-- Which units -------------------------------------------------------------------===//

  virtual void beginTask(Units) {}
  /// Returns the unit of the phase that is the n-th of the task, or of the class that is being walked.
  virtual mlir::Value unitAt(mlir::Value n) { return n; }
  /// True if the task's units are walked by classes; then forEachClass runs `walk` for each class of rows
  /// that the task has, at least once.
  virtual bool byClasses() const { return false; }
  virtual void forEachClass(llvm::function_ref<void(Units)>) { llvm_unreachable("a task without classes"); }
  /// Begins a class of the slab's rows, of which one starts at `first`.
  virtual void beginClass(SlabOp, const Coordinates& /*first*/) {}
  /// Begins rows of any class, which are accessed by elements: a thread has the features of an aligned row.
  virtual void beginElements(SlabOp) {}
  /// Begins the units of a step.
  virtual void beginStep(SlabOp, llvm::ArrayRef<Coordinates>) {}

  //===-- Where -------------------------------------------------------------------------===//

  /// True if a run may begin at any element.
  virtual bool anywhere() const { return false; }
  /// Returns the accesses of a run; the number that every run has at least, wherever it begins.
  virtual mlir::Value count(int64_t /*replica*/ = 0) { return whole(); }
  virtual mlir::Value leastCount() { return whole(); }
  /// Returns the elements before the accesses; null: none.
  virtual mlir::Value head(int64_t /*replica*/ = 0) { return {}; }
  /// Returns the elements of a thread at both ends of a run together, and the i-th of them.
  virtual int64_t ends() const { return 0; }
  virtual Position end(int64_t /*i*/, int64_t /*replica*/ = 0) { llvm_unreachable("a run without ends"); }
  /// Returns the index-th access of the run.
  Position at(mlir::Value index, bool inside, int64_t replica = 0);
  /// Returns the k-th access of this thread. After those of the tile come its elements at the ends.
  Position ofTile(int64_t k, int64_t replica = 0);
  int64_t positions() const { return k_.s.tile + ends(); }
  int64_t lanes(const Position& p) const { return p.single ? 0 : k_.lanes(); }
  /// Returns the coordinates of an access to the run that begins at `run`; of its vectors of features.
  Coordinates along(const Coordinates& run, const Position&);
  Coordinates feature(const Position& p) {
    return {.feature = l_.add(run_.begin, p.offset), .chunk = f_.task()};
  }
  const Run& run() const { return run_; }

  //===-- How ---------------------------------------------------------------------------===//

  /// Set: all tensors are read in whole accesses, or by elements. Else the alignment of each decides.
  using Whole = std::optional<bool>;
  /// Returns what `read` loads of the rows of a step, values of these types.
  virtual Values readTogether(llvm::ArrayRef<mlir::Type>, llvm::function_ref<Values(Whole)> read) {
    return read({});
  }
  virtual mlir::Value loadStored(TensorOp, const Coordinates&, int64_t lanes, int64_t replica, Whole = {});
  /// Loads in the statistics type where the condition holds, else returns zero. Memory outside of the run is
  /// not read: another team may store to it.
  mlir::Value load(mlir::Value condition, TensorOp, const Coordinates&, int64_t lanes, int64_t replica);
  /// Returns the condition under which an access to the replica's run is whole; null: it is.
  virtual mlir::Value isWhole(TensorOp, int64_t /*replica*/) { return {}; }
  /// Returns the alignment of a whole access in bytes, if it is not that of all accesses of the phase.
  virtual std::optional<int64_t> alignment(TensorOp) const { return std::nullopt; }

 protected:
  RunAccess(KernelThread&, const Run&);
  mlir::Value whole() { return l_.div(run_.width, l_.index(k_.s.vector)); }

  KernelThread& k_;
  Loops& l_;
  AccessLowering& f_;
  const Run& run_;
};

/// The members that the policies of a slab have in common. Each keeps values in another place.
class SlabPolicy {
 protected:
  SlabPolicy(KernelThread& thread, RunAccess& access)
      : k_(thread), l_(thread.l), f_(thread.f), access_(access) {}

  KernelThread& k_;
  Loops& l_;
  AccessLowering& f_;
  RunAccess& access_;
};

}  // namespace normc::codegen::cuda
