// HeldValues keeps in registers of a slab: elements of a run's tile, for all sweeps that read them, and
// vectors of features that belong to the thread's places of the tile, for all rows.
//
// It knows values by tensor, replica and place, and how to load those that are missing. It does not know what
// is computed from them.
#pragma once

#include "codegen/targets/cuda/RunAccess.h"

namespace normc::codegen::cuda {

class HeldValues : SlabPolicy {
 public:
  HeldValues(KernelThread& thread, RunAccess& access) : SlabPolicy(thread, access) {}

  //===-- Elements of a run, in the statistics type ---------------------------------------===//

  /// Returns the value of the replica's access at a place of the tile; null if it is not held.
  mlir::Value find(TensorOp t, int64_t replica, int64_t place) const {
    return elements_.lookup({t.getOperation(), keyOf(replica, place)});
  }
  void hold(TensorOp t, int64_t replica, int64_t place, mlir::Value stored) {
    elements_[{t.getOperation(), keyOf(replica, place)}] = f_.widened(t, stored);
  }
  void clear() { elements_.clear(); }
  /// Reads the tensors at every place that is not held, where the condition holds (null: always). All loads
  /// of a run are in flight before the first is used.
  void fetch(llvm::ArrayRef<TensorOp>, llvm::ArrayRef<Replica>, mlir::Value condition = {});
  /// Runs `code`. What it has fetched is not held afterwards, unless it `stays`.
  void whileHeld(bool stays, llvm::function_ref<void()> code);

  //===-- Vectors of features -------------------------------------------------------------===//

  mlir::Value vector(TensorOp t, int64_t place) const { return vectors_.lookup({t.getOperation(), place}); }
  void holdVector(TensorOp t, int64_t place, mlir::Value v) { vectors_[{t.getOperation(), place}] = v; }
  void clearVectors() { vectors_.clear(); }
  /// Loads the slab's vectors, once, that would be loaded in each step otherwise.
  void loadVectors(SlabOp);
  /// Lets `compute` hold these vectors at a position of the tile that is inside. Where rows have ends of
  /// their own, nothing is read elsewhere: a block may have fewer columns than an access.
  void holdInside(const Position&, llvm::ArrayRef<TensorOp>, llvm::function_ref<void()> compute);

 private:
  using Map = llvm::DenseMap<std::pair<mlir::Operation*, int64_t>, mlir::Value>;
  static int64_t keyOf(int64_t replica, int64_t place) { return replica * 256 + place; }

  Map elements_, vectors_;
};

}  // namespace normc::codegen::cuda
