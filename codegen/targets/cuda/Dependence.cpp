#include "codegen/targets/cuda/Dependence.h"

#include "codegen/targets/cuda/GridBarrier.h"
#include "codegen/targets/cuda/Ptx.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// The first architecture that has it.
static constexpr int64_t kDependentLaunch = 90;

static PhaseOp next(PhaseOp phase) { return dyn_cast_or_null<PhaseOp>(phase->getNextNode()); }

bool isDependent(PhaseOp phase, const Arch& arch) {
  return arch.number >= kDependentLaunch && phase.number() > 0;
}

void beginPhase(OpBuilder& b, PhaseOp phase, const Arch& arch) {
  if (isDependent(phase, arch)) waitForLaunchBefore(b, phase.getLoc());
  if (PhaseOp after = next(phase); after && isDependent(after, arch)) letNextLaunchBegin(b, phase.getLoc());
}

llvm::DenseSet<StringRef> writtenIn(PhaseOp phase) {
  llvm::DenseSet<StringRef> names;
  phase->walk([&](Operation* op) {
    if (auto store = dyn_cast<StoreOp>(op)) names.insert(store.getTensor());
    if (auto add = dyn_cast<AccumulateOp>(op)) names.insert(add.getTensor());
    if (auto sweep = dyn_cast<SweepOp>(op))
      for (ArrayAttr list : {sweep.getWrites(), sweep.getPartials()})
        for (auto name : list.getAsRange<FlatSymbolRefAttr>()) names.insert(name.getValue());
  });
  for (auto t : phase->getParentOfType<KernelOp>().getOps<TensorOp>())
    if (belongsToGridBarrier(t)) names.insert(t.getSymName());
  return names;
}

llvm::DenseSet<StringRef> changingIn(PhaseOp phase, const Arch& arch) {
  auto names = writtenIn(phase);
  if (!isDependent(phase, arch)) return names;
  for (auto before : phase->getParentOfType<KernelOp>().getOps<PhaseOp>()) {
    if (before == phase) break;
    names.insert_range(writtenIn(before));
  }
  return names;
}

}  // namespace normc::codegen::cuda
