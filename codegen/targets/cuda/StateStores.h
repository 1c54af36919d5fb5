// Stores of state that wait. State may be updated in place, and all threads of a task that run the same
// scalar code must have read it before one of them stores.
//
// It knows which stores wait, and which barrier they wait for. It does not know what is stored.
#pragma once

#include "codegen/targets/cuda/SumTree.h"

namespace normc::codegen::cuda {

class StateStores {
 public:
  StateStores(KernelThread& thread, SumTree& tree) : k_(thread), tree_(tree) {}

  /// Defers a store to the end of the scalar code, or to the next read of its tensor.
  void defer(TensorOp t, mlir::Value condition, std::function<void()> store) {
    stores_.push_back({t, condition, std::move(store)});
  }
  /// Stores what waits, after all threads that may read it.
  void storeAll();
  /// Stores now, so that all threads of the task may read what is stored.
  void publish();
  void beforeRead(TensorOp);
  /// Arrives at the grid barrier of the stores before the last sweep of a slab, if nothing after it reads
  /// state. Then only the block that stores waits.
  void beforeSweep(SweepOp);

 private:
  bool otherBlocksRead() const;

  struct Store {
    TensorOp tensor;
    mlir::Value condition;
    std::function<void()> store;
  };
  KernelThread& k_;
  SumTree& tree_;
  llvm::SmallVector<Store> stores_;
  bool arrived_ = false;  ///< at the grid barrier that they wait for
};

}  // namespace normc::codegen::cuda
