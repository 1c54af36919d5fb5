// Stores of state that wait until other threads have read.
#include "codegen/targets/cuda/StateStores.h"

namespace normc::codegen::cuda {

/// True if other blocks may still read the state that the stores overwrite.
bool StateStores::otherBlocksRead() const {
  return llvm::any_of(stores_, [](const Store& w) { return !isUnshared(w.tensor); });
}

void StateStores::storeAll() {
  if (stores_.empty()) return;
  const bool arrived = std::exchange(arrived_, false);
  auto store = [&] {
    for (Store& w : std::exchange(stores_, {})) k_.storeWhere(w.condition, w.store);
  };
  if (!k_.gridded() || !otherBlocksRead()) {
    if (!k_.gridded()) tree_.taskBarrier();
    return store();
  }
  if (!arrived) tree_.arriveAtGrid();
  k_.storeWhere(k_.isZero(k_.rank), [&] {  // only the first block stores, so only it waits
    tree_.waitForGrid();
    store();
  });
}

void StateStores::publish() {
  if (stores_.empty()) return;
  storeAll();
  tree_.taskBarrier();
}

void StateStores::beforeRead(TensorOp t) {
  if (llvm::any_of(stores_, [&](const Store& w) { return w.tensor == t; })) publish();
}

void StateStores::beforeSweep(SweepOp sweep) {
  if (!k_.gridded() || !sweep.getSums().empty() || !otherBlocksRead()) return;
  for (TensorOp t : k_.f.tensors(sweep.getReads()))
    if (!isUnshared(t) && !t.isXSized()) return;
  for (mlir::Operation* op = sweep->getNextNode(); op; op = op->getNextNode())
    if (mlir::isa<SweepOp, LoadOp, FoldOp, ProbeOp, AccumulateOp>(op)) return;
  tree_.arriveAtGrid();
  arrived_ = true;
}

}  // namespace normc::codegen::cuda
