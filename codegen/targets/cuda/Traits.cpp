#include "codegen/targets/cuda/Traits.h"

#include "codegen/Manifest.h"
#include "codegen/targets/cuda/Launch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace normc::codegen::cuda {

/// Returns the X-sized tensors of a phase, once for every sweep that reads them, and again for their mates.
static llvm::SmallVector<TensorOp> readIn(PhaseOp phase) {
  llvm::SmallVector<TensorOp> tensors;
  auto kernel = phase->getParentOfType<KernelOp>();
  phase->walk([&](SweepOp sweep) {
    llvm::append_range(tensors, kernel.tensors(sweep.getReads()));
    if (auto mates = sweep.getMates()) llvm::append_range(tensors, kernel.tensors(*mates));
  });
  llvm::erase_if(tensors, [](TensorOp t) { return !t.isXSized(); });
  return tensors;
}

bool readsAgain(PhaseOp phase) {
  bool streams = llvm::all_of(phase.getOps<SlabOp>(), [](SlabOp slab) {
    return !slab.hasSweeps() || slab.getKind() == SlabKind::Stream;
  });
  auto here = readIn(phase);
  return streams && llvm::any_of(phase->getParentOfType<KernelOp>().getOps<PhaseOp>(), [&](PhaseOp other) {
           auto before = readIn(other);
           return other.number() < phase.number() &&
                  llvm::any_of(here, [&](TensorOp t) { return llvm::is_contained(before, t); });
         });
}

bool keeps(SlabOp slab, const Schedule& s) {
  return slab.getResident() && s.tile > 0 && slab.getKind() == SlabKind::Run;
}

bool readsElsewhere(SlabOp slab) {
  return !slab.getOps<BlocksOp>().empty() ||
         llvm::any_of(slab.sweeps(), [](SweepOp sweep) { return bool(sweep.getMates()); });
}

llvm::SmallVector<TensorOp> lastAccessed(PhaseOp phase, const Schedule& s) {
  llvm::SmallVector<TensorOp> streamed;
  if (!s.hints) return streamed;
  auto kernel = phase->getParentOfType<KernelOp>();
  auto here = readIn(phase);
  const auto writes = [&](TensorOp t) {
    return llvm::any_of(phase.getOps<SlabOp>(), [&](SlabOp slab) {
      return llvm::any_of(slab.sweeps(), [&](SweepOp sweep) {
        return llvm::is_contained(sweep.getWrites(), mlir::FlatSymbolRefAttr::get(t.getSymNameAttr()));
      });
    });
  };
  bool kept = llvm::all_of(phase.getOps<SlabOp>(),
                           [&](SlabOp slab) { return keeps(slab, s) && !readsElsewhere(slab); });
  for (auto t : kernel.getOps<TensorOp>()) {
    if (!t.isXSized() || (s.hints == 2 && writes(t))) continue;
    bool later = llvm::any_of(kernel.getOps<PhaseOp>(), [&](PhaseOp other) {
      return other.number() > phase.number() && llvm::is_contained(readIn(other), t);
    });
    if (!later && (kept || llvm::count(here, t) <= 1)) streamed.push_back(t);
  }
  return streamed;
}

/// True if a run has blocks of codes, which begin where accesses may.
static bool hasBlocks(PhaseOp phase) {
  return llvm::any_of(phase.getOps<SlabOp>(), [](SlabOp slab) { return !slab.getOps<BlocksOp>().empty(); });
}

bool isPeelable(PhaseOp phase) {
  if (hasBlocks(phase)) return false;
  bool adds = false;
  phase->walk([&](AccumulateOp) { adds = true; });
  return !adds && llvm::all_of(phase.getOps<SlabOp>(), [](SlabOp slab) {
    return slab.hasSweeps() && slab.getKind() == SlabKind::Run &&
           llvm::all_of(slab.sweeps(), [](SweepOp sweep) { return sweep.getPartials().empty(); });
  });
}

bool isCongruent(PhaseOp phase) {
  auto kernel = phase->getParentOfType<KernelOp>();
  int64_t bodies = 0;
  bool rows = kernel.featuresLast() && !phase.getBySegment();  // a task takes rows of its neighbours
  for (auto slab : phase.getOps<SlabOp>()) {
    if (!slab.hasSweeps()) continue;
    const bool stream = slab.getKind() == SlabKind::Stream;
    rows &= stream || (slab.getKind() == SlabKind::Run && slab.groups() == 1 && !slab.getHead() &&
                       slab.getOps<ProbeOp>().empty());
    bodies += !slab.getHead();
  }
  return rows && bodies == 1 && !hasBlocks(phase) && !isPeelable(phase);
}

int64_t partialsOf(PhaseOp phase) {
  int64_t partials = 0;
  phase->walk([&](SweepOp sweep) { partials += int64_t(sweep.getPartials().size()); });
  return partials;
}

int64_t widestBytes(KernelOp kernel) {
  int64_t widest = 0;
  for (auto t : kernel.getOps<TensorOp>())
    if (t.isXSized()) widest = std::max(widest, elementBytes(t.getType()));
  return widest;
}

/// Returns the operations of a sweep on an element. A function such as exp is many instructions.
static int64_t operationsOf(SweepOp sweep) {
  constexpr int64_t kOfFunction = 16;
  int64_t count = 0;
  for (mlir::Operation& op : sweep.getBody().front().without_terminator())
    if (!mlir::isa<mlir::arith::ConstantOp>(op))
      count += op.getName().getDialectNamespace() == "math" ? kOfFunction : 1;
  return count;
}

/// Adds what the threads of the phase tell each other besides sums per feature.
static void addExchanges(PhaseOp phase, KernelTraits& traits) {
  auto kernel = phase->getParentOfType<KernelOp>();
  int64_t sums = 0, probes = 0, counts = 0, lines = 0;
  for (auto slab : phase.getOps<SlabOp>()) {
    const SlabKind kind = slab.getKind();
    if (!slab.hasSweeps() || (kind != SlabKind::Run && kind != SlabKind::Block)) continue;
    lines += kind == SlabKind::Run;
    slab.walk([&](ProbeOp) { ++probes; });
    for (auto sweep : slab.sweeps()) {
      sums += int64_t(sweep.getSums().size());
      for (TensorOp t : kernel.tensors(sweep.getPartials())) sums += !t.hasAxis(kernel.contiguousAxis());
    }
  }
  if (kernel.hasMask()) phase.walk([&](CountOp) { ++counts; });
  traits.runSums = std::max(traits.runSums, sums);
  traits.runProbes = std::max(traits.runProbes, probes);
  traits.counts = std::max(traits.counts, counts);
  traits.lineSlabs = std::max(traits.lineSlabs, lines);
}

/// Adds what the sweeps of a slab read, and in how many operations.
static void addReads(SlabOp slab, KernelTraits& traits) {
  auto kernel = slab->getParentOfType<KernelOp>();
  const bool line = slab.getKind() == SlabKind::Run;
  llvm::SmallPtrSet<mlir::Operation*, 4> read, vectors;
  int64_t vectorBytes = 0;
  for (auto sweep : slab.sweeps()) {
    for (TensorOp t : kernel.tensors(sweep.getReads())) {
      if (t.isXSized()) {
        traits.mixed |= elementBytes(t.getType()) != traits.dataBytes;
        read.insert(t);
      } else if (line && t.hasAxis(kernel.contiguousAxis()) && vectors.insert(t).second) {
        vectorBytes += elementBytes(t.getType());
      }
    }
    traits.operations = std::max(traits.operations, operationsOf(sweep));
  }
  traits.vectorBytes = std::max(traits.vectorBytes, vectorBytes);
  traits.mostReads = std::max<int64_t>(traits.mostReads, read.size());
  if (line || slab.getKind() == SlabKind::Block) traits.reads = std::max<int64_t>(traits.reads, read.size());
}

static void addColumns(SlabOp slab, KernelTraits& traits) {
  traits.columns = true;
  const auto always =
      llvm::make_filter_range(slab.sweeps(), [](SweepOp sweep) { return !sweep.getCondition(); });
  traits.sweepsColumnsTwice |= llvm::range_size(always) > 1;
  traits.segmentColumns |= slab.isPer(Axis::Segment);
  traits.columnReads = std::max<int64_t>(traits.columnReads, readAlways(slab).size());
  traits.columnSums += llvm::range_size(slab.getOps<ProbeOp>());
  for (auto sweep : slab.sweeps()) traits.columnSums += sweep.getSums().size();
}

static void addStream(SlabOp slab, KernelTraits& traits) {
  traits.streams = true;
  traits.streamSums |=
      llvm::any_of(slab.sweeps(), [](SweepOp sweep) { return !sweep.getPartials().empty(); });
}

/// Adds the runs of a line or a block: their groups, lengths and sums.
static void addRuns(SlabOp slab, KernelTraits& traits) {
  auto kernel = slab->getParentOfType<KernelOp>();
  const int64_t groups = slab.groups();
  if (slab.getKind() == SlabKind::Run) {
    traits.lines = true;
    traits.heldBytes = std::max(traits.heldBytes, heldBytes(slab));
    auto vectors = vectorsOfAllRows(slab);
    traits.heldMixed |= llvm::any_of(vectors, [&](TensorOp t) {
      return elementBytes(t.getType()) != elementBytes(vectors.front().getType());
    });
    traits.conditional |=
        llvm::any_of(slab.sweeps(), [](SweepOp sweep) { return bool(sweep.getCondition()); });
    if (kernel.featuresLast()) traits.groups = groups;
  } else {
    traits.blocks = true;
  }
  if (kernel.featuresLast()) {
    traits.grouped |= groups > 1;
    traits.width = traits.features / groups;
  }
  slab->walk([&](AccumulateOp) { traits.runPartials = true; });
  for (auto sweep : slab.sweeps())
    for (TensorOp t : kernel.tensors(sweep.getPartials()))
      if (t.hasAxis(kernel.contiguousAxis()))
        ++traits.partials;
      else
        traits.runPartials = true;
}

static void addSlab(SlabOp slab, KernelTraits& traits) {
  if (!slab.hasSweeps()) return;
  traits.turns |= llvm::any_of(slab.sweeps(), [](SweepOp sweep) { return bool(sweep.getMates()); });
  addReads(slab, traits);
  switch (slab.getKind()) {
    case SlabKind::Column:
      return addColumns(slab, traits);
    case SlabKind::Stream:
      return addStream(slab, traits);
    case SlabKind::Run:
    case SlabKind::Block:
      return addRuns(slab, traits);
  }
}

KernelTraits traitsOf(KernelOp kernel) {
  KernelTraits traits;
  traits.features = kernel.getFeatures().value_or(0);
  traits.f64Statistics = kernel.getStatistics().isF64();
  for (auto t : kernel.getOps<TensorOp>())
    traits.backward |= t.info() && t.info()->takenBy == TakenBy::Backward;
  if (const int64_t widest = widestBytes(kernel)) traits.dataBytes = widest;  // a commit has none
  if (llvm::any_of(kernel.getOps<PhaseOp>(), hasBlocks)) traits.block = kernel.getBlock().value_or(0);
  traits.columnReads = traits.backward ? 2 : 1;
  traits.updatesState = traits.backward && llvm::any_of(kernel.getOps<TensorOp>(), [](TensorOp t) {
                          return t.getRole() == package::Role::StateOut;
                        });
  llvm::SmallPtrSet<mlir::Operation*, 4> before;
  for (auto phase : kernel.getOps<PhaseOp>()) {
    traits.bySegment |= phase.getBySegment();
    addExchanges(phase, traits);
    auto here = readIn(phase);
    for (TensorOp t : here) traits.rereads |= before.contains(t);
    before.insert(here.begin(), here.end());
  }
  traits.peelable = llvm::all_of(kernel.getOps<PhaseOp>(), isPeelable);
  auto sweeping = llvm::make_filter_range(kernel.getOps<PhaseOp>(), hasSweeps);
  traits.congruent =
      llvm::all_of(sweeping, [](PhaseOp phase) { return isPeelable(phase) || isCongruent(phase); }) &&
      llvm::any_of(sweeping, [](PhaseOp phase) { return isCongruent(phase); });
  kernel->walk([&](SlabOp slab) { addSlab(slab, traits); });
  return traits;
}

KernelTraits traitsOf(const Problem& problem, Strategy strategy) {
  KernelTraits traits;
  llvm::cantFail(withPlan(problem, strategy, [&](KernelOp kernel) { traits = traitsOf(kernel); }));
  return traits;
}

int64_t accessBytes(KernelOp kernel, const Schedule& s) { return s.vector * widestBytes(kernel); }

}  // namespace normc::codegen::cuda
