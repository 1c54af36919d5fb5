#include "codegen/targets/cuda/Dependence.h"

#include "codegen/targets/cuda/GridBarrier.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Ptx.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// The bytes that a block of a brief phase reads at most.
static constexpr int64_t kBriefBytes = 64 << 10;

bool isDependent(PhaseOp phase, const Arch& arch) { return arch.dependentLaunches() && phase.number() > 0; }

static PhaseOp nextOf(PhaseOp phase) { return dyn_cast_or_null<PhaseOp>(phase->getNextNode()); }

bool endsEarly(PhaseOp phase, const Arch& arch) {
  const PhaseOp next = nextOf(phase);
  return next && isDependent(next, arch) && !nextOf(next);
}

void beginPhase(OpBuilder& b, PhaseOp phase, const Arch& arch) {
  if (isDependent(phase, arch)) waitForLaunchBefore(b, phase.getLoc());
}

std::optional<int64_t> briefUnits(PhaseOp phase, const Schedule& schedule, const Arch& arch) {
  const PhaseOp next = nextOf(phase);
  if (!next || !isDependent(next, arch)) return std::nullopt;
  int64_t bytes = 0;
  const Launch launch = launchOf(phase, schedule);
  auto kernel = phase->getParentOfType<KernelOp>();
  for (auto slab : phase.getOps<SlabOp>()) {
    if (!slab.hasSweeps()) continue;
    if (!phase.hasUnits(Axis::Row) || !kernel.featuresLast()) return std::nullopt;
    const int64_t columns =
        launch.columns ? launch.columns : kernel.getFeatures().value_or(0) / launch.cluster;
    if (columns == 0) return std::nullopt;
    int64_t element = 0;
    for (TensorOp t : readAlways(slab)) element += elementBytes(t.getType());
    bytes = std::max(bytes, columns * element);
  }
  return bytes ? kBriefBytes / bytes + 1 : std::numeric_limits<int64_t>::max();
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
