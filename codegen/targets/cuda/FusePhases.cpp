#include "codegen/targets/cuda/FusePhases.h"

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
      bool reads = isa<LoadOp, CountOp, ProbeOp>(op) || isMemoryEffectFree(op);
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
    if (auto sweep = dyn_cast<SweepOp>(op)) add(sweep.getReads());
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

static bool overFeatures(PhaseOp phase) {
  return phase.getUnits().size() == 1 && cast<StringAttr>(phase.getUnits()[0]) == "feature";
}

/// Tensors and folds are numbered by phase; what comes after a phase that is gone moves up.
static void erase(KernelOp kernel, PhaseOp phase) {
  int64_t gone = phase.number();
  auto moved = [&](StringRef axis) -> std::optional<std::string> {
    int64_t n;
    StringRef rest = axis;
    if (!rest.consume_front("chunk.") || rest.getAsInteger(10, n) || n <= gone) return std::nullopt;
    return "chunk." + std::to_string(n - 1);
  };
  Builder b(kernel.getContext());
  phase.erase();
  for (auto t : kernel.getOps<TensorOp>()) {
    SmallVector<Attribute> axes;
    for (StringRef axis : t.getAxes().getAsValueRange<StringAttr>())
      axes.push_back(b.getStringAttr(moved(axis).value_or(axis.str())));
    t.setAxesAttr(b.getArrayAttr(axes));
  }
  kernel->walk([&](FoldOp fold) {
    if (auto axis = moved(fold.getAxis())) fold.setAxis(*axis);
  });
}

static bool holdsColumns(PhaseOp phase, const Schedule& s) {
  auto kernel = phase->getParentOfType<KernelOp>();
  if (!kernel.featuresLast() || s.tile < 1 || s.shared) return false;
  for (auto slab : phase.getOps<SlabOp>()) {
    if (!slab.hasSweeps()) return false;
    if (slab.getPer().empty()) continue;
    int64_t groups = slab.isPer("pre_group") ? kernel.getPreGroups()
                     : slab.isPer("group")   ? kernel.getGroups()
                                             : 1;
    if (!slab.isPer("row") || s.threads % (s.team * groups)) return false;
  }
  return true;
}

static void fusePrepare(KernelOp kernel, PhaseOp prepare, PhaseOp apply, const Schedule& s) {
  if (!overFeatures(prepare) || prepare.getWarmup() || apply.getWarmup() || !holdsColumns(apply, s)) return;
  auto role = [&](StringRef name) {
    return cast<TensorOp>(SymbolTable::lookupSymbolIn(kernel, name)).getRole();
  };
  Names stored = storedIn(prepare), loaded = loadedIn(prepare), work;
  for (StringRef name : stored) {
    if (role(name) != "workspace" && role(name) != "saved") return;
    if (role(name) == "workspace") work.insert(name);
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
  before->walk([&](CountOp op) { counted |= op.getScope() == "all"; });
  if (counts && !counted) return;
  Block& to = before.getBody().front();
  for (Operation& op : llvm::make_early_inc_range(advance.getBody().front())) op.moveBefore(&to, to.end());
  if (!overFeatures(before))
    before->setAttr(leastBlocksAttrName(), IntegerAttr::get(IntegerType::get(kernel.getContext(), 64), 1));
  erase(kernel, advance);
}

void fusePhases(KernelOp kernel, const Schedule& schedule) {
  dropUnused(kernel);
  auto phases = llvm::to_vector(kernel.getOps<PhaseOp>());
  if (phases.size() > 1) fuseAdvance(kernel, phases[phases.size() - 2], phases.back());
  phases = llvm::to_vector(kernel.getOps<PhaseOp>());
  for (size_t i = 0; i + 1 < phases.size(); ++i)
    if (phases[i + 1].getRole() == "apply") {
      fusePrepare(kernel, phases[i], phases[i + 1], schedule);
      break;
    }
}

}  // namespace normc::codegen::cuda
