#include "codegen/targets/cuda/FusePhases.h"

#include "codegen/targets/cuda/Traits.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace normc::codegen::cuda {

llvm::StringRef hoistedAttrName() { return "ahead"; }
llvm::StringRef leastBlocksAttrName() { return "least_blocks"; }

using Names = llvm::DenseSet<StringRef>;

/// Removes loads without a use of their value: they would look like a dependence.
static void dropUnused(KernelOp kernel) {
  bool again = true;
  while (std::exchange(again, false)) {
    SmallVector<Operation*> unused;
    kernel->walk([&](Operation* op) {
      bool reads = isa<LoadOp, CountOp>(op) || isMemoryEffectFree(op);
      if (reads && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
          op->getNumResults() > 0 && op->use_empty())
        unused.push_back(op);
    });
    for (Operation* op : unused) op->erase();
    again = !unused.empty();
  }
}

static Names loadedIn(Operation* root) {
  Names names;
  root->walk([&](Operation* op) {
    if (auto load = dyn_cast<LoadOp>(op)) names.insert(load.getTensor());
    auto add = [&](ArrayAttr list) {
      for (auto name : list.getAsRange<FlatSymbolRefAttr>()) names.insert(name.getValue());
    };
    if (auto sweep = dyn_cast<SweepOp>(op)) {
      add(sweep.getReads());
      if (auto mates = sweep.getMates()) add(*mates);
    }
    if (auto fold = dyn_cast<FoldOp>(op)) add(fold.getReads());
  });
  return names;
}

static Names storedIn(Operation* root) {
  Names names;
  root->walk([&](StoreOp store) { names.insert(store.getTensor()); });
  return names;
}

/// state_in.F and state_out.F may be one memory.
static std::string twin(StringRef name) {
  if (name.consume_front("state_out.")) return ("state_in." + name).str();
  return name.str();
}

/// Tensors and folds are numbered by phase; what comes after a phase that is gone moves up.
static void erase(KernelOp kernel, PhaseOp phase) {
  const int64_t gone = phase.number();
  phase.erase();
  auto move = [&](auto op) {
    if (const auto number = op.getChunkOf(); number && int64_t(*number) > gone) op.setChunkOf(*number - 1);
  };
  for (auto t : kernel.getOps<TensorOp>()) move(t);
  kernel->walk([&](FoldOp fold) { move(fold); });
}

/// True if a thread needs vectors of features for the elements that it has in registers alone.
static bool holdsColumns(PhaseOp phase, const Schedule& s) {
  auto kernel = phase->getParentOfType<KernelOp>();
  if (!kernel.featuresLast() || s.tile < 1 || s.shared) return false;
  for (auto slab : phase.getOps<SlabOp>()) {
    if (!slab.hasSweeps() || readsElsewhere(slab)) return false;
    if (slab.getKind() == SlabKind::Stream) continue;
    if (!slab.isPer(Axis::Row) || s.threads % (s.team * slab.groups())) return false;
  }
  return true;
}

static void fusePrepare(KernelOp kernel, PhaseOp prepare, PhaseOp apply, const Schedule& s) {
  if (!prepare.isOverFeatures() || prepare.getWarmup() || apply.getWarmup() || !holdsColumns(apply, s))
    return;
  auto role = [&](StringRef name) { return kernel.tensor(name).getRole(); };
  Names stored = storedIn(prepare), loaded = loadedIn(prepare), work;
  for (StringRef name : stored) {
    const bool inWorkspace = role(name) == package::Role::Workspace;
    if (!inWorkspace && role(name) != package::Role::Saved) return;
    if (inWorkspace) work.insert(name);
    if (loaded.contains(name)) return;
  }
  bool simple = true;
  prepare->walk([&](Operation* op) {
    if (isa<FoldOp, CountOp, ProbeOp, AccumulateOp>(op)) simple = false;
    if (auto slab = dyn_cast<SlabOp>(op)) simple &= !slab.hasSweeps();
  });
  for (Operation& op : prepare.getBody().front()) simple &= isa<SlabOp>(op);
  for (auto phase : kernel.getOps<PhaseOp>())  // others would look for it in memory
    if (phase != prepare && phase != apply)
      for (StringRef name : loadedIn(phase)) simple &= !work.contains(name);
  for (StringRef name : loadedIn(apply)) simple &= !stored.contains(name) || work.contains(name);
  if (!simple) return;
  Builder b(kernel.getContext());
  auto slabs = llvm::to_vector(prepare.getOps<SlabOp>());
  for (SlabOp slab : llvm::reverse(slabs)) {
    slab->moveBefore(&apply.getBody().front(), apply.getBody().front().begin());
    slab->setAttr(hoistedAttrName(), b.getUnitAttr());
  }
  apply->setAttr(leastBlocksAttrName(), b.getI64IntegerAttr(1));
  erase(kernel, prepare);
}

static void fuseAdvance(KernelOp kernel, PhaseOp before, PhaseOp advance) {
  if (!advance.getUnits().empty() || before.getWarmup() != advance.getWarmup()) return;
  Names loaded = loadedIn(before), stored = storedIn(before);
  for (StringRef name : storedIn(advance))
    if (loaded.contains(twin(name)) || loaded.contains(name) || stored.contains(name)) return;
  for (StringRef name : loadedIn(advance))
    if (stored.contains(name)) return;
  bool counts = false, counted = !kernel.hasMask();
  advance->walk([&](CountOp) { counts = true; });
  before->walk([&](CountOp op) { counted |= op.getScope() == CountScope::All; });
  if (counts && !counted) return;
  Block& to = before.getBody().front();
  for (Operation& op : llvm::make_early_inc_range(advance.getBody().front())) op.moveBefore(&to, to.end());
  if (!before.isOverFeatures())
    before->setAttr(leastBlocksAttrName(), IntegerAttr::get(IntegerType::get(kernel.getContext(), 64), 1));
  erase(kernel, advance);
}

static void fuse(KernelOp kernel, const Schedule& schedule) {
  dropUnused(kernel);
  auto phases = llvm::to_vector(kernel.getOps<PhaseOp>());
  if (phases.size() > 1) fuseAdvance(kernel, phases[phases.size() - 2], phases.back());
  phases = llvm::to_vector(kernel.getOps<PhaseOp>());
  for (size_t i = 0; i + 1 < phases.size(); ++i)
    if (phases[i + 1].getRole() == PhaseRole::Apply) {
      fusePrepare(kernel, phases[i], phases[i + 1], schedule);
      break;
    }
}

PassPtr fusePhases(const Schedule& schedule) {
  return modulePass("norm-fuse-phases", [schedule](ModuleOp module) {
    for (auto kernel : module.getOps<KernelOp>()) fuse(kernel, schedule);
  });
}

}  // namespace normc::codegen::cuda
