#include "codegen/targets/cuda/Schedule.h"

#include "codegen/Manifest.h"
#include "codegen/targets/Knobs.h"
#include "codegen/targets/cuda/Legality.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace normc::codegen::cuda {

Prefetch Prefetch::fromKnob(int64_t knob) {
  if (knob < 1) return {None, knob};
  if (knob == 1) return {Registers, 1};
  return knob <= kMostAhead + 1 ? Prefetch{Async, knob - 1} : Prefetch{Bulk, knob - (kMostAhead + 1)};
}
int64_t Prefetch::knob() const {
  return kind == Async ? depth + 1 : kind == Bulk ? depth + kMostAhead + 1 : depth;
}

/// `prefetch`: the knob, which is no number of the schedule.
static llvm::SmallVector<Knob> knobsOf(Schedule& s, int64_t& prefetch) {
  return {{"threads", &s.threads}, {"team", &s.team},     {"vector", &s.vector}, {"tile", &s.tile},
          {"rows", &s.rows},       {"chunks", &s.chunks}, {"blocks", &s.blocks}, {"prefetch", &prefetch},
          {"cluster", &s.cluster}, {"hints", &s.hints},   {"hold", &s.hold},     {"grid", &s.grid},
          {"shared", &s.shared}};
}

std::string Schedule::text() const {
  Schedule copy = *this;
  int64_t knob = prefetch.knob();
  return scheduleText(strategy, knobsOf(copy, knob));
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  int64_t prefetch = 0;
  if (auto error = parseScheduleText(text, schedule.strategy, kStrategies, knobsOf(schedule, prefetch)))
    return error;
  schedule.prefetch = Prefetch::fromKnob(prefetch);
  return schedule;
}

void setKnob(Schedule& s, llvm::StringRef name, int64_t value) {
  int64_t prefetch = s.prefetch.knob();
  codegen::setKnob(knobsOf(s, prefetch), name, value);
  s.prefetch = Prefetch::fromKnob(prefetch);
}

//===-- What is read again ----------------------------------------------------------===//

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

int64_t heldRows(const Schedule& s) { return s.hold * s.rows * (s.threads / s.team) * s.cluster * s.grid; }

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

//===-- Peeling -------------------------------------------------------------------===//

/// True if a run has blocks of codes, which begin where accesses may.
static bool hasBlocks(PhaseOp phase) {
  return llvm::any_of(phase.getOps<SlabOp>(), [](SlabOp slab) { return !slab.getOps<BlocksOp>().empty(); });
}

static bool isPeelable(PhaseOp phase) {
  if (hasBlocks(phase)) return false;
  bool adds = false;
  phase->walk([&](AccumulateOp) { adds = true; });
  return !adds && llvm::all_of(phase.getOps<SlabOp>(), [](SlabOp slab) {
    return slab.hasSweeps() && slab.getKind() == SlabKind::Run &&
           llvm::all_of(slab.sweeps(), [](SweepOp sweep) { return sweep.getPartials().empty(); });
  });
}

/// True if the phase walks whole rows in one slab, besides that of the pilot rows, and a thread has the same
/// features in all of them.
static bool isCongruent(PhaseOp phase) {
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

/// The most bytes of shared memory in which sums are transposed. Two buffers share it if both fit.
static constexpr int64_t kTransposedBytes = 40 << 10;

int64_t transposedBytes(const Schedule& s) { return s.vector * (s.threads + transposePitch(s.vector)) * 4; }
int64_t transposeBuffers(const Schedule& s) { return 2 * transposedBytes(s) <= kTransposedBytes ? 2 : 1; }

static int64_t registersFor(const Schedule& s) {
  return std::min<int64_t>(kMaxRegisters, kRegisters / (s.threads * std::max<int64_t>(s.blocks, 1)));
}

/// Returns the registers of a thread that takes congruent rows; an estimate. Vectors of features, ends and
/// addresses take some, too. No spill was seen with this many.
static int64_t registersOfCongruent(const KernelTraits& traits, const Schedule& s) {
  return registersOf(traits, s) + s.tile * s.vector + 7 * s.tile + 32;
}

Schedule spread(const KernelTraits& traits, const Schedule& s) {
  Schedule spread = s;
  while (traits.lines && registersOfCongruent(traits, spread) > registersFor(s) && spread.tile % 2 == 0 &&
         s.threads % (2 * spread.team * traits.groups) == 0)
    spread.tile /= 2, spread.team *= 2;
  return spread;
}

/// Returns why a kernel whose phases could take congruent rows does not.
std::optional<std::string> whyNotCongruent(const KernelTraits& traits, const Schedule& s) {
  auto number = [](int64_t n) { return std::to_string(n); };
  const int64_t length = traits.lines ? traits.width : traits.features;
  if (s.vector == 1 || s.tile == 0) return "no run stays in registers";
  if (s.shared || (traits.lines && s.grid > 1))
    return "runs do not stay in registers of a block or a cluster";
  if (length && length < leastPeeled(s.vector))
    return "only runs of " + number(leastPeeled(s.vector)) + " and more are peeled";
  if (transposedBytes(s) > kTransposedBytes)
    return number(s.threads) + " threads would turn round sums of " + number(transposedBytes(s)) +
           " bytes in shared memory; a block has " + number(kTransposedBytes) + " for that";
  const int64_t registers = registersOfCongruent(traits, spread(traits, s));
  if (traits.lines && registers > registersFor(s))
    return "rows that begin alike take about " + number(registers) + " registers a thread; " +
           number(s.threads) + " threads leave " + number(registersFor(s));
  return std::nullopt;
}

bool takesCongruentRows(PhaseOp phase, const Schedule& s) {
  return isCongruent(phase) && !whyNotCongruent(traitsOf(phase->getParentOfType<KernelOp>()), s);
}

int64_t partialsOf(PhaseOp phase) {
  int64_t partials = 0;
  phase->walk([&](SweepOp sweep) { partials += int64_t(sweep.getPartials().size()); });
  return partials;
}

Schedule congruent(const Schedule& s, int64_t partials) {
  Schedule congruent = s;
  congruent.hold = 0;                 // vectors are in registers
  constexpr int64_t kRoomAhead = 16;  // elements of a thread that leave registers for the next row
  if (s.prefetch.copiesAhead() || s.tile * s.vector > kRoomAhead) congruent.prefetch = {};
  // The ends take registers, and so do the eight pilot rows of a task, which are read by elements.
  if (partials > 2 && s.vector >= 8) {
    congruent.blocks = std::min<int64_t>(s.blocks, 1);
  } else {
    congruent.rows = std::min<int64_t>(s.rows, partials == 2 && s.vector >= 8 ? 2 : 3);
    if (s.blocks > 2) congruent.blocks = s.blocks * 3 / 4;
  }
  return congruent;
}

bool peels(PhaseOp phase, const Schedule& s) {
  if (s.vector == 1 || !isPeelable(phase)) return false;
  int64_t width = traitsOf(phase->getParentOfType<KernelOp>()).width;
  return s.tile == 0 || width >= leastPeeled(s.vector);
}

bool alwaysPeels(const KernelTraits& traits, const Schedule& s) {
  if (traits.congruent && !whyNotCongruent(traits, s))
    return (traits.lines ? traits.width : traits.features) % s.vector != 0;
  return traits.peelable && s.vector > 1 &&
         (traits.width % s.vector != 0 || (traits.grouped && !traits.width));
}

/// Returns the registers of a thread if a multiprocessor shall hold so many blocks. Each scheduler has its
/// own registers, so the one with the most warps decides.
static int64_t registersOfWarp(int64_t threads, int64_t blocks) {
  const int64_t warps = llvm::divideCeil(blocks * threads / kWarp, kSchedulers);
  return std::min<int64_t>(kMaxRegisters, kRegisters / kSchedulers / warps / kWarp / 8 * 8);
}

Schedule peeled(const Schedule& s) {
  Schedule peeled = s;
  peeled.prefetch = {};
  peeled.hold = 0;  // a thread has other features in each row
  if (s.tile == 0) peeled.rows = 1;
  if (!s.blocks || s.grid > 1) return peeled;
  // Shifting takes registers. Long runs were seen not to spill with this many.
  const int64_t registers = s.rows == 1 ? 5 * s.tile * s.vector + 24 : 0;
  peeled.blocks = std::max<int64_t>(1, s.blocks * 3 / 4);
  while (peeled.blocks > 1 && registersOfWarp(s.threads, peeled.blocks) < registers) --peeled.blocks;
  return peeled;
}

//===-- Traits of a kernel --------------------------------------------------------===//

static int64_t bytesOf(TensorOp t) { return t.getType().getIntOrFloatBitWidth() / 8; }

/// Returns the bytes of an element of the X-sized tensor with the widest ones; 0 if there is no such tensor.
static int64_t widestBytes(KernelOp kernel) {
  int64_t widest = 0;
  for (auto t : kernel.getOps<TensorOp>())
    if (t.isXSized()) widest = std::max(widest, bytesOf(t));
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
        traits.mixed |= bytesOf(t) != traits.dataBytes;
        read.insert(t);
      } else if (line && t.hasAxis(kernel.contiguousAxis()) && vectors.insert(t).second) {
        vectorBytes += bytesOf(t);
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

//===-- Single elements ---------------------------------------------------------------===//

Schedule unaligned(const Schedule& s) {
  Schedule single = s;
  single.tile = s.tile * s.vector;
  single.shared = s.shared * s.vector;
  single.vector = single.rows = 1;
  if (s.grid == 1) single.blocks = 1;  // else as many have to be there at once
  single.prefetch = {};
  single.hold = 0;  // so many single elements have too many addresses
  return single;
}

}  // namespace normc::codegen::cuda
