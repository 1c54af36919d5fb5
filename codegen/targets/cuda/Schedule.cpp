#include "codegen/targets/cuda/Schedule.h"

#include "codegen/targets/Knobs.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cuda {

/// Elements of a column slab that a thread of 256 keeps beside code that meets others over the grid, where ptxas finds
/// less room before sm_90.
static constexpr int64_t kHeldOverGrid = 80;
/// Threads of a phase that has no sweeps: few, so that features spread over the device.
static constexpr int64_t kVectorThreads = 64;
/// Of a multiprocessor, of every architecture.
static constexpr int64_t kRegisters = 64 << 10;
/// Of a block, in what a module declares.
static constexpr int64_t kSharedBytes = 48 << 10;

/// Steps that runs are copied ahead at most.
static constexpr int64_t kMostAhead = 3;
/// Shared memory for the sums of teams, at most.
static constexpr int64_t kSumBytes = 2048;

static llvm::SmallVector<Knob> knobsOf(Schedule& s) {
  return {{"threads", &s.threads}, {"team", &s.team},     {"vector", &s.vector}, {"tile", &s.tile},
          {"rows", &s.rows},       {"chunks", &s.chunks}, {"blocks", &s.blocks}, {"prefetch", &s.prefetch},
          {"cluster", &s.cluster}, {"hints", &s.hints},   {"hold", &s.hold},     {"grid", &s.grid},
          {"shared", &s.shared}};
}

std::string Schedule::text() const {
  Schedule copy = *this;
  return scheduleText(strategy, knobsOf(copy));
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  if (auto error = parseScheduleText(text, schedule.strategy, kStrategies, knobsOf(schedule))) return error;
  return schedule;
}

static bool isLine(SlabOp slab, KernelOp kernel) {
  return kernel.featuresLast() ? slab.isPer("row") : slab.isPer("segment") && slab.isPer("feature");
}

//===-- What is read again ----------------------------------------------------------===//

/// X-sized tensors, once for every sweep that reads them.
static llvm::SmallVector<TensorOp> readIn(PhaseOp phase) {
  llvm::SmallVector<TensorOp> tensors;
  phase->walk([&](SweepOp sweep) {
    for (auto name : sweep.getReads().getAsRange<mlir::FlatSymbolRefAttr>()) {
      auto t = mlir::cast<TensorOp>(mlir::SymbolTable::lookupSymbolIn(phase->getParentOfType<KernelOp>(), name));
      if (t.isXSized()) tensors.push_back(t);
    }
  });
  return tensors;
}

bool readsAgain(PhaseOp phase) {
  bool streams = llvm::all_of(phase.getOps<SlabOp>(), [](SlabOp slab) { return !slab.hasSweeps() || slab.getPer().empty(); });
  auto here = readIn(phase);
  return streams && llvm::any_of(phase->getParentOfType<KernelOp>().getOps<PhaseOp>(), [&](PhaseOp other) {
    auto before = readIn(other);
    return other.number() < phase.number() && llvm::any_of(here, [&](TensorOp t) { return llvm::is_contained(before, t); });
  });
}

bool keeps(SlabOp slab, const Schedule& s) {
  return slab.getResident() && s.tile > 0 && isLine(slab, slab->getParentOfType<KernelOp>());
}

int64_t heldRows(const Schedule& s) { return s.hold * s.rows * (s.threads / s.team) * s.cluster * s.grid; }

llvm::SmallVector<TensorOp> streamedIn(PhaseOp phase, const Schedule& s) {
  llvm::SmallVector<TensorOp> streamed;
  if (!s.hints) return streamed;
  auto kernel = phase->getParentOfType<KernelOp>();
  auto here = readIn(phase);
  bool kept = llvm::all_of(phase.getOps<SlabOp>(), [&](SlabOp slab) { return keeps(slab, s); });
  for (auto t : kernel.getOps<TensorOp>()) {
    if (!t.isXSized()) continue;
    bool later = llvm::any_of(kernel.getOps<PhaseOp>(), [&](PhaseOp other) {
      return other.number() > phase.number() && llvm::is_contained(readIn(other), t);
    });
    if (!later && (kept || llvm::count(here, t) <= 1)) streamed.push_back(t);
  }
  return streamed;
}

//===-- Peeling -------------------------------------------------------------------===//

static bool sweepsOver(PhaseOp phase) {
  return llvm::any_of(phase.getOps<SlabOp>(), [](SlabOp slab) { return slab.hasSweeps(); });
}

static bool isPeelable(PhaseOp phase) {
  auto kernel = phase->getParentOfType<KernelOp>();
  bool adds = false;
  phase->walk([&](AccumulateOp) { adds = true; });
  return !adds && llvm::all_of(phase.getOps<SlabOp>(), [&](SlabOp slab) {
    return slab.hasSweeps() && isLine(slab, kernel) &&
           llvm::all_of(slab.getOps<SweepOp>(), [](SweepOp sweep) { return sweep.getPartials().empty(); });
  });
}

/// Whether it walks whole rows, one slab of them beside that of a head, with the same features of a thread in all of them.
static bool isAlike(PhaseOp phase) {
  auto kernel = phase->getParentOfType<KernelOp>();
  int64_t bodies = 0;
  bool rows = kernel.featuresLast();
  for (auto slab : phase.getOps<SlabOp>()) {
    if (!slab.hasSweeps()) continue;
    const bool stream = slab.getPer().empty();
    const int64_t groups = slab.isPer("pre_group") ? kernel.getPreGroups() : slab.isPer("group") ? kernel.getGroups() : 1;
    rows &= stream || (isLine(slab, kernel) && groups == 1 && !slab.getHead() && slab.getOps<ProbeOp>().empty());
    bodies += !slab.getHead();
  }
  return rows && bodies == 1 && !isPeelable(phase);
}

/// Bytes of shared memory that sums are turned round in, at most: half of it where two buffers fit.
static constexpr int64_t kTurnedBytes = 40 << 10;

static int64_t turnedBytes(const Schedule& s) { return s.vector * (s.threads + pitchOfAlike(s.vector)) * 4; }
int64_t turningBuffers(const Schedule& s) { return 2 * turnedBytes(s) <= kTurnedBytes ? 2 : 1; }

static int64_t registersOf(const Form&, const Schedule&);
static int64_t registersFor(const Schedule& s) {
  return std::min<int64_t>(kMaxRegisters, kRegisters / (s.threads * std::max<int64_t>(s.blocks, 1)));
}

/// Why a kernel whose phases could take rows that begin alike does not.
static std::optional<std::string> whyNotAlike(const Form& form, const Schedule& s) {
  auto number = [](int64_t n) { return std::to_string(n); };
  const int64_t length = form.lines ? form.width : form.features;
  if (s.vector == 1 || s.tile == 0) return "no run stays in registers";
  if (s.shared || (form.lines && s.grid > 1)) return "runs do not stay in registers of a block or a cluster";
  if (length && length < leastPeeled(s.vector)) return "only runs of " + number(leastPeeled(s.vector)) + " and more are peeled";
  if (turnedBytes(s) > kTurnedBytes)
    return number(s.threads) + " threads would turn round sums of " + number(turnedBytes(s)) +
           " bytes in shared memory; a block has " + number(kTurnedBytes) + " for that";
  // Vectors of features stay in registers, beside the ends and addresses; so much was seen to do without spills.
  const int64_t registers = registersOf(form, s) + s.tile * s.vector + 7 * s.tile + 32;
  if (form.lines && registers > registersFor(s))
    return "rows that begin alike take about " + number(registers) + " registers a thread; " + number(s.threads) +
           " threads leave " + number(registersFor(s));
  return std::nullopt;
}

bool takesRowsAlike(PhaseOp phase, const Schedule& s) {
  return isAlike(phase) && !whyNotAlike(formOf(phase->getParentOfType<KernelOp>()), s);
}

int64_t partialsOf(PhaseOp phase) {
  int64_t partials = 0;
  phase->walk([&](SweepOp sweep) { partials += int64_t(sweep.getPartials().size()); });
  return partials;
}

Schedule alike(const Schedule& s, int64_t partials) {
  Schedule alike = s;
  constexpr int64_t kRoomAhead = 16;  // elements of a thread, beside which the next row's find registers, too
  if (s.prefetch > 1 || s.tile * s.vector > kRoomAhead) alike.prefetch = 0;
  // The ends take registers, and so do the eight rows of a task's head, which are read by elements.
  if (partials > 2 && s.vector >= 8) {
    alike.blocks = std::min<int64_t>(s.blocks, 1);
  } else {
    alike.rows = std::min<int64_t>(s.rows, partials == 2 && s.vector >= 8 ? 2 : 3);
    if (s.blocks > 2) alike.blocks = s.blocks * 3 / 4;
  }
  return alike;
}

bool peels(PhaseOp phase, const Schedule& s) {
  if (s.vector == 1 || !isPeelable(phase)) return false;
  int64_t width = formOf(phase->getParentOfType<KernelOp>()).width;
  return s.tile == 0 || width >= leastPeeled(s.vector);
}

bool alwaysPeels(const Form& form, const Schedule& s) {
  if (form.alike && !whyNotAlike(form, s)) return (form.lines ? form.width : form.features) % s.vector != 0;
  return form.peels && s.vector > 1 && (form.width % s.vector != 0 || (form.grouped && !form.width));
}

/// Whether accesses may be wider than what divides a run.
static bool beginsAnywhere(const Form& form, const Schedule& s) { return form.peels || (form.alike && s.tile > 0); }

/// Registers that ptxas has for a thread where so many blocks of them shall be there: of each scheduler's own, so what
/// counts is the one with the most warps.
static int64_t registersOfWarp(int64_t threads, int64_t blocks) {
  const int64_t warps = llvm::divideCeil(blocks * threads / kWarp, kSchedulers);
  return std::min<int64_t>(kMaxRegisters, kRegisters / kSchedulers / warps / kWarp / 8 * 8);
}

Schedule peeled(const Schedule& s) {
  Schedule peeled = s;
  peeled.prefetch = 0;
  if (s.tile == 0) peeled.rows = 1;
  if (!s.blocks || s.grid > 1) return peeled;
  // Shifting takes registers: for long runs, as many were seen to do without spills.
  const int64_t registers = s.rows == 1 ? 5 * s.tile * s.vector + 24 : 0;
  peeled.blocks = std::max<int64_t>(1, s.blocks * 3 / 4);
  while (peeled.blocks > 1 && registersOfWarp(s.threads, peeled.blocks) < registers) --peeled.blocks;
  if (s.tile == 0) peeled.rows = 1;
  return peeled;
}

//===-- What a kernel asks for ----------------------------------------------------===//

Form formOf(KernelOp kernel) {
  Form form;
  bool featuresLast = kernel.featuresLast();
  form.features = kernel.getFeatures().value_or(0);
  form.doubles = kernel.getStatistics().isF64();
  for (auto t : kernel.getOps<TensorOp>()) {
    if (t.isXSized()) form.dataBytes = t.getType().getIntOrFloatBitWidth() / 8;
    form.backward |= t.info() && t.info()->takenBy == TakenBy::Backward;
  }
  form.updates = form.backward && llvm::any_of(kernel.getOps<TensorOp>(), [](TensorOp t) { return t.getRole() == "state_out"; });
  llvm::SmallPtrSet<mlir::Operation*, 4> before;
  for (auto phase : kernel.getOps<PhaseOp>()) {
    auto here = readIn(phase);
    for (TensorOp t : here) form.rereads |= before.contains(t);
    before.insert(here.begin(), here.end());
  }
  form.peels = llvm::all_of(kernel.getOps<PhaseOp>(), isPeelable);
  auto sweeping = llvm::make_filter_range(kernel.getOps<PhaseOp>(), sweepsOver);
  form.alike = llvm::all_of(sweeping, [](PhaseOp phase) { return isPeelable(phase) || isAlike(phase); }) &&
               llvm::any_of(sweeping, [](PhaseOp phase) { return isAlike(phase); });
  kernel->walk([&](SlabOp slab) {
    bool adds = false;
    slab->walk([&](AccumulateOp) { adds = true; });
    if (!slab.hasSweeps()) return;
    bool line = isLine(slab, kernel);
    bool column = featuresLast && !line && slab.isPer("feature");
    if (slab.getPer().empty()) form.streams = true;
    else if (line) form.lines = true;
    else if (column) form.columns = true;
    else form.blocks = true;
    if (column) {
      auto always = llvm::make_filter_range(slab.getOps<SweepOp>(), [](SweepOp sweep) { return !sweep.getCondition(); });
      form.returns |= llvm::range_size(always) > 1;
      form.segmentColumns |= slab.isPer("segment");
      form.sums += llvm::range_size(slab.getOps<ProbeOp>());
      for (auto sweep : slab.getOps<SweepOp>()) form.sums += sweep.getSums().size();
    }
    if (column || slab.getPer().empty()) return;
    int64_t groups = slab.isPer("pre_group") ? kernel.getPreGroups() : slab.isPer("group") ? kernel.getGroups() : 1;
    if (line) form.maybe |= llvm::any_of(slab.getOps<SweepOp>(), [](SweepOp sweep) { return bool(sweep.getCondition()); });
    if (featuresLast) {
      form.grouped |= groups > 1;
      if (line) form.groups = groups;
      form.width = form.features / groups;
    }
    form.runPartials |= adds;
    llvm::SmallPtrSet<mlir::Operation*, 4> read;
    for (auto sweep : slab.getOps<SweepOp>()) {
      int64_t here = 0;
      for (auto name : sweep.getPartials().getAsRange<mlir::FlatSymbolRefAttr>()) {
        auto t = mlir::cast<TensorOp>(mlir::SymbolTable::lookupSymbolIn(kernel, name));
        if (t.hasAxis(featuresLast ? "feature" : "row")) ++here;
        else form.runPartials = true;
      }
      form.partials += here;
      for (auto name : sweep.getReads().getAsRange<mlir::FlatSymbolRefAttr>()) {
        auto t = mlir::cast<TensorOp>(mlir::SymbolTable::lookupSymbolIn(kernel, name));
        if (t.isXSized()) read.insert(t);
      }
    }
    form.reads = std::max<int64_t>(form.reads, read.size());
  });
  return form;
}

Form formOf(const Problem& problem, Strategy strategy) {
  Form form;
  llvm::cantFail(withPlan(problem, strategy, [&](KernelOp kernel) { form = formOf(kernel); }));
  return form;
}

llvm::SmallVector<TensorOp> readAlways(SlabOp slab) {
  llvm::SmallVector<TensorOp> tensors;
  for (auto sweep : slab.getOps<SweepOp>()) {
    if (sweep.getCondition()) continue;
    for (auto name : sweep.getReads().getAsRange<mlir::FlatSymbolRefAttr>()) {
      auto t = mlir::cast<TensorOp>(mlir::SymbolTable::lookupSymbolIn(slab->getParentOfType<KernelOp>(), name));
      if (t.isXSized() && !llvm::is_contained(tensors, t)) tensors.push_back(t);
    }
  }
  return tensors;
}

int64_t copiedBytes(const Schedule& s, int64_t reads) {
  return copiedAhead(s) ? (copiedAhead(s) + 1) * s.rows * s.tile * reads * s.threads * kCopiedBytes : 0;
}

int64_t sharedRunBytes(const Schedule& s, int64_t reads, int64_t dataBytes) {
  return (copiedAhead(s) + 1) * s.shared * reads * s.vector * dataBytes * s.threads;
}

int64_t sharedSumBytes(const Schedule& s, int64_t partials) { return s.shared * partials * s.vector * 4 * s.threads; }

/// Of a line: the partials that its runs sum per feature.
static int64_t partialsOf(SlabOp slab) {
  auto kernel = slab->getParentOfType<KernelOp>();
  int64_t count = 0;
  for (auto sweep : slab.getOps<SweepOp>())
    for (auto name : sweep.getPartials().getAsRange<mlir::FlatSymbolRefAttr>())
      count += mlir::cast<TensorOp>(mlir::SymbolTable::lookupSymbolIn(kernel, name)).hasAxis(kernel.featuresLast() ? "feature" : "row");
  return count;
}

static int64_t dynamicBytes(SlabOp slab, const Schedule& s) {
  auto tensors = readAlways(slab);
  if (tensors.empty()) return 0;
  const int64_t reads = int64_t(tensors.size()), dataBytes = tensors[0].getType().getIntOrFloatBitWidth() / 8;
  return copiedBytes(s, reads) + sharedRunBytes(s, reads, dataBytes) + sharedSumBytes(s, partialsOf(slab));
}

Launch launchOf(PhaseOp phase, const Schedule& s) {
  auto kernel = phase->getParentOfType<KernelOp>();
  Launch launch{.threads = kVectorThreads, .blocks = 1};
  for (auto slab : phase.getOps<SlabOp>()) {
    if (!slab.hasSweeps()) continue;
    launch.threads = s.threads;
    launch.blocks = s.blocks;
    if (keeps(slab, s)) launch.shared = std::max(launch.shared, dynamicBytes(slab, s));
    bool column = kernel.featuresLast() && slab.isPer("feature") && !slab.isPer("row");
    bool own = phase.getUnits().size() == 1 && mlir::cast<mlir::StringAttr>(phase.getUnits()[0]) == "feature";
    if (slab.getPer().empty() || (column && !own)) launch.columns = columnsOf(s);
    if (slab.isPer("row") || column) launch.cluster = s.cluster, launch.grid = s.grid;
  }
  return launch;
}

int64_t blocksTogether(const Schedule& s, const Arch& arch) {
  return arch.multiprocessors * std::max<int64_t>(s.blocks, 1);
}

int64_t tasksTogether(const Schedule& s, const Arch& arch) {
  return std::clamp<int64_t>(blocksTogether(s, arch) / s.grid, 1, s.chunks);
}

int64_t unitsPerStep(PhaseOp phase, const Schedule& s) {
  auto kernel = phase->getParentOfType<KernelOp>();
  int64_t groups = 1;
  for (auto slab : phase.getOps<SlabOp>())
    if (slab.hasSweeps() && slab.isPer("row"))
      groups = slab.isPer("pre_group") ? kernel.getPreGroups() : slab.isPer("group") ? kernel.getGroups() : 1;
  int64_t span = kernel.featuresLast() && s.threads % (s.team * groups) == 0 ? s.team * groups : s.team;
  return s.threads / span * s.rows;
}

int64_t accessBytes(KernelOp kernel, const Schedule& s) {
  for (auto t : kernel.getOps<TensorOp>())
    if (t.isXSized()) return s.vector * t.getType().getIntOrFloatBitWidth() / 8;
  return 0;
}

//===-- Legality ----------------------------------------------------------------------===//

/// Registers of one thread, from what it holds; a little is always needed for addresses.
static int64_t registersOf(const Form& form, const Schedule& s) {
  int64_t held = s.tile * s.vector * s.rows;
  int64_t values = form.lines ? held * form.reads : std::max<int64_t>(held, s.vector * s.rows);
  int64_t sums = (form.lines || form.blocks ? form.partials : 2) * s.tile * s.vector;
  if (s.prefetch == 1) values += held * form.reads * form.dataBytes / 4;
  if (form.columns) values += s.hold * s.rows * s.vector * (form.backward ? 2 : 1);
  if (s.shared) values += s.vector * form.reads;  // an access that was in shared memory
  return values + sums + (form.partials ? s.tile * s.vector : 0) + 32;
}

/// What is left of a block's share of a multiprocessor's shared memory, beside what its threads tell each other and a KiB
/// of the system's.
static int64_t roomOf(const Form& form, const Schedule& s, const Arch& arch) {
  const bool exchanges = form.partials && s.threads != s.team * form.groups;
  return arch.sharedBytes / std::max<int64_t>(s.blocks, 1) - kSumBytes - (exchanges ? 4 * 2 * s.threads * s.vector : 0) - 1024;
}

/// Why a run's rest cannot stay in shared memory.
static std::optional<std::string> whyNotShared(const Form& form, const Schedule& s, const Arch& arch) {
  auto number = [](int64_t n) { return std::to_string(n); };
  const std::string shared = "shared = " + number(s.shared);
  if (s.shared < 0) return shared + "; legal: at least 0";
  if (s.shared == 0) return std::nullopt;
  if (!form.lines || form.blocks || form.columns || form.streams || s.tile == 0)
    return shared + " holds what registers do not of a run, and this kernel keeps none in registers; legal: 0";
  if (form.maybe) return shared + ", but whether rows of this kernel are read is known when it runs; legal: 0";
  if (s.rows != 1) return shared + " holds one row of a team, not rows = " + number(s.rows) + "; legal: rows = 1, or shared = 0";
  if (form.partials ? s.threads != s.team * form.groups : s.threads % (s.team * form.groups) != 0)
    return shared + " holds all groups of a row" + (form.partials ? ", and sums per feature of one row in a block" : "") + "; team = " +
           number(s.team) + " for each of " + number(form.groups) + " groups in " + number(s.threads) + " threads; legal: threads = " +
           (form.partials ? "" : "a multiple of ") + number(s.team * form.groups);
  const int64_t copied = copiedBytes(s, form.reads), room = roomOf(form, s, arch) - copied;
  const int64_t bytes = sharedRunBytes(s, form.reads, form.dataBytes) + sharedSumBytes(s, form.partials);
  if (bytes <= room) return std::nullopt;
  return shared + " accesses of " + number(s.threads) + " threads, " + number(bytes / (s.shared * s.threads)) + " bytes each for " +
         number(form.reads) + " tensors of " + number(copiedAhead(s) + 1) + " rows and " + number(form.partials) + " sums, take " +
         number(bytes) + " bytes of a block; " + arch.name + " with blocks = " + number(std::max<int64_t>(s.blocks, 1)) + " has " +
         number(std::max<int64_t>(room, 0)) + " for each" + (copied ? " beside what is copied ahead" : "");
}

/// Why runs cannot be copied to shared memory ahead.
static std::optional<std::string> whyNotCopied(const Form& form, const Schedule& s, const Arch& arch) {
  if (!copiedAhead(s)) return std::nullopt;
  const std::string prefetch = "prefetch = " + std::to_string(s.prefetch) + " copies to shared memory";
  if (copiesInBulk(s) && !arch.clusters())
    return prefetch + " in bulk, and " + arch.name + " has no bulk copies, sm_90 is the first; legal: 0 to " + std::to_string(kMostAhead + 1);
  if (copiesInBulk(s) && s.shared)
    return prefetch + " in bulk, and shared = " + std::to_string(s.shared) + " waits for copies of its own; legal: 0 to " + std::to_string(kMostAhead + 1);
  if (copiesInBulk(s) && (s.team < kWarp || form.groups > 1))
    return prefetch + " in bulk, a piece for a team of at least a warp, which has a row alone; here team = " + std::to_string(s.team) +
           " has one of " + std::to_string(form.groups) + " groups of it; legal: 0 to " + std::to_string(kMostAhead + 1);
  if (s.vector * form.dataBytes != kCopiedBytes)
    return prefetch + " 16 bytes at a time, and vector = " + std::to_string(s.vector) + " makes accesses of " +
           std::to_string(s.vector * form.dataBytes) + "; legal: vector = " + std::to_string(kCopiedBytes / form.dataBytes) + ", or prefetch = 0 or 1";
  if (form.width % s.vector)
    return prefetch + " from multiples of 16 bytes, and runs of " + std::to_string(form.width) + " elements begin elsewhere; legal: 0 or 1";
  if (s.threads % (s.team * form.groups))
    return prefetch + " all groups of a row, and team = " + std::to_string(s.team) + " for each of " + std::to_string(form.groups) +
           " does not divide the " + std::to_string(s.threads) + " threads; legal: 0 or 1";
  const int64_t bytes = copiedBytes(s, form.reads), blocks = std::max<int64_t>(s.blocks, 1), room = roomOf(form, s, arch);
  if (bytes <= room) return std::nullopt;
  std::string product;
  for (int64_t factor : {copiedAhead(s) + 1, s.rows, s.tile, form.reads, s.threads, kCopiedBytes})
    product += (product.empty() ? "" : " * ") + std::to_string(factor);
  return prefetch + ": steps * rows * tile * tensors * threads * bytes = " + product + " = " + std::to_string(bytes) + " of a block; " +
         arch.name + " with blocks = " + std::to_string(blocks) + " has " + std::to_string(std::max<int64_t>(room, 0)) + " for each";
}

/// Bytes of shared memory where columns lie over a cluster: the block's two buffers, and two for each value of all blocks.
static int64_t sharedOf(const Form& form, const Schedule& s) {
  return 4 * 2 * (s.threads * s.vector + form.sums * s.cluster * columnsOf(s));
}

/// Why a run, or columns, cannot lie over that many blocks.
static std::optional<std::string> whyNoCluster(const Form& form, const Schedule& s, const Arch& arch) {
  const std::string cluster = "cluster = " + std::to_string(s.cluster);
  if (s.cluster < 1 || s.cluster > kMaxCluster || !llvm::isPowerOf2_64(s.cluster))
    return cluster + "; legal: a power of two up to " + std::to_string(kMaxCluster);
  if (s.cluster == 1) return std::nullopt;
  if (!arch.clusters()) return cluster + ", but " + arch.name + " has no clusters of blocks, sm_90 is the first; legal: 1";
  if (form.lines == form.columns || form.blocks || form.streams)
    return cluster + ", but only rows with statistics of their own, or columns that are complete in a block, lie over blocks; legal: 1";
  if (form.columns) {
    const int64_t shared = sharedOf(form, s);
    if (shared <= kSharedBytes) return std::nullopt;
    return cluster + " blocks that share " + std::to_string(columnsOf(s)) + " columns tell each other in " + std::to_string(shared) +
           " bytes of shared memory; a block has " + std::to_string(kSharedBytes);
  }
  if (s.tile == 0) return cluster + ", but no run of this kernel stays in registers; legal: 1";
  if (s.team % kWarp) return "team = " + std::to_string(s.team) + " in a cluster of " + std::to_string(s.cluster) + " blocks; legal: whole warps of 32";
  if (s.threads % (s.team * form.groups))
    return "team = " + std::to_string(s.team) + " for each of " + std::to_string(form.groups) + " groups in a cluster of " +
           std::to_string(s.cluster) + " blocks does not divide the " + std::to_string(s.threads) + " threads of one";
  return std::nullopt;
}

/// Why columns cannot lie over so many blocks that wait for each other.
static std::optional<std::string> whyNoGrid(const Form& form, const Schedule& s, const Arch& arch) {
  const std::string grid = "grid = " + std::to_string(s.grid);
  if (s.grid < 1) return grid + "; legal: at least 1";
  if (s.grid == 1) return std::nullopt;
  const bool rows = form.lines && !form.columns && !form.maybe, columns = form.columns && !form.lines && !form.segmentColumns && form.returns;
  if (form.blocks || form.streams || !(rows || columns))
    return grid + ", but only rows with statistics of their own, or columns of all rows, which are read for their statistic and then "
                  "again, lie over a grid; legal: 1";
  if (s.cluster > 1) return grid + " blocks in clusters of " + std::to_string(s.cluster) + "; legal: one of the two";
  if (rows && s.tile == 0) return grid + ", but no run of this kernel stays in registers; legal: 1";
  if (rows && (s.team % kWarp || s.threads % (s.team * form.groups)))
    return grid + " blocks that share rows, with team = " + std::to_string(s.team) + " for each of " + std::to_string(form.groups) +
           " groups in " + std::to_string(s.threads) + " threads; legal: whole warps of 32 that divide them";
  const int64_t held = s.hold * s.rows * s.vector * (form.backward ? 2 : 1);
  if (columns && held > kHeldOverGrid && !arch.clusters())
    return "hold = " + std::to_string(s.hold) + " keeps " + std::to_string(held) +
           " elements of a thread; beside what blocks of a grid tell each other " + arch.name + " has registers for " +
           std::to_string(kHeldOverGrid);
  if (const int64_t most = blocksTogether(s, arch); s.grid > most)
    return grid + " blocks that wait for each other; " + arch.name + " holds " + std::to_string(most) + " at once, " +
           std::to_string(std::max<int64_t>(s.blocks, 1)) + " on each of " + std::to_string(arch.multiprocessors) + " multiprocessors";
  return std::nullopt;
}

std::optional<std::string> whyIllegal(const Form& form, const Schedule& s, const Arch& arch) {
  auto number = [](int64_t n) { return std::to_string(n); };
  if (form.doubles) return "statistics in f64; a CUDA kernel computes them in f32, so the data is f32, bf16 or f16";
  if (s.threads < 32 || s.threads > 1024 || s.threads % 32) return "threads = " + number(s.threads) + "; legal: a multiple of 32 up to 1024";
  bool warps = s.team > 32 ? s.team % 32 == 0 : s.team >= 1 && llvm::isPowerOf2_64(s.team);
  if (!warps || s.threads % s.team)
    return "team = " + number(s.team) + "; legal: a power of two up to 32, or whole warps, that divides the " + number(s.threads) + " threads";
  int64_t lanes = arch.accessBytes / form.dataBytes;
  if (s.vector < 1 || s.vector > lanes || !llvm::isPowerOf2_64(s.vector))
    return "vector = " + number(s.vector) + "; legal: a power of two up to " + number(lanes) + ", the " + number(arch.accessBytes) +
           " bytes of one access on " + arch.name;
  if (s.rows < 1 || s.rows > 8) return "rows = " + number(s.rows) + "; legal: 1 to 8";
  if (s.tile < 0 || s.tile > 64) return "tile = " + number(s.tile) + "; legal: 0 to 64";
  if (s.chunks < 1) return "chunks = " + number(s.chunks) + "; legal: at least 1";
  if (s.blocks < 0 || s.blocks * s.threads > arch.threads)
    return "blocks = " + number(s.blocks) + " of " + number(s.threads) + " threads; " + arch.name + " holds " + number(arch.threads) + " threads";
  if (auto reason = whyNoCluster(form, s, arch)) return reason;
  if (auto reason = whyNoGrid(form, s, arch)) return reason;
  if (auto reason = whyNotShared(form, s, arch)) return reason;
  const int64_t over = s.cluster * (form.lines ? s.grid : 1);
  int64_t access = s.team * over * s.vector, run = access * (s.tile + s.shared);
  const std::string product = std::string("team * ") + (s.cluster > 1 ? "cluster * " : over > 1 ? "grid * " : "") + "vector * " + (s.shared ? "(tile + shared) = " : "tile = ");
  if (form.streams && s.tile < 1) return std::string("tile = 0, but sums per feature stay in registers; legal: at least 1");
  if (form.columns && s.tile != 1) return "tile = " + number(s.tile) + ", but a thread holds one column; legal: 1";
  if ((form.lines || form.blocks) && s.tile > 0) {
    if (form.width == 0) return "tile = " + number(s.tile) + ", but the length of a run is not known; legal: 0";
    if (run < form.width - (beginsAnywhere(form, s) ? form.width % s.vector : 0))
      return product + number(run) + " elements do not hold a run of " + number(form.width);
    if (run - access >= form.width)
      return product + number(run) + ": the last accesses would find nothing of a run of " + number(form.width);
    if (access - s.team * s.vector >= form.width)
      return product + number(run) + ": the last of " + number(over) + " blocks would find nothing of a run of " + number(form.width);
  }
  if (form.grouped && !form.width && s.vector > 1 && !form.peels)
    return "vector = " + number(s.vector) + ", but groups of any number of features may begin anywhere; legal: 1";
  if (form.width && form.width % s.vector && !beginsAnywhere(form, s))
    return "vector = " + number(s.vector) + " does not divide a run of " + number(form.width);
  if (form.width && form.width % s.vector && form.width < leastPeeled(s.vector))
    return "vector = " + number(s.vector) + " does not divide a run of " + number(form.width) + ", and only runs of " +
           number(leastPeeled(s.vector)) + " and more are peeled";
  if (form.lines && form.width % s.vector && !form.peels)
    if (auto reason = whyNotAlike(form, s))
      return "vector = " + number(s.vector) + " does not divide a run of " + number(form.width) + ", and " + *reason;
  if (form.lines && s.tile == 0 && s.team <= 32)
    return "team = " + number(s.team) + " for runs that are walked in a loop; legal: more than a warp of 32";
  bool alone = form.lines && (form.runPartials || (form.partials && s.tile == 0));
  bool runs = form.blocks && (form.runPartials || (form.partials && s.tile == 0));
  if ((alone || runs) && (s.team != s.threads || s.rows != 1))
    return "team = " + number(s.team) + ", rows = " + number(s.rows) + ": partials that go straight to memory need one run at a time; legal: team = threads, rows = 1";
  if (form.lines && form.groups > 1 && s.tile > 0 && form.partials && s.threads % (s.team * form.groups))
    return "team = " + number(s.team) + " for each of " + number(form.groups) + " groups does not divide the " + number(s.threads) + " threads";
  if (s.hints < 0 || s.hints > 1) return "hints = " + number(s.hints) + "; legal: 0 or 1";
  if (s.prefetch < 0 || s.prefetch > 2 * kMostAhead + 1)
    return "prefetch = " + number(s.prefetch) + "; legal: 0, 1 (to registers), 2 to " + number(kMostAhead + 1) +
           " (to shared memory, that many steps ahead and one), or " + number(kMostAhead + 2) + " to " + number(2 * kMostAhead + 1) +
           " (the same in bulk)";
  if (s.prefetch && (!form.lines || s.tile == 0))
    return "prefetch = " + number(s.prefetch) + ", but no run of this kernel stays in registers; legal: 0";
  if (auto reason = whyNotCopied(form, s, arch)) return reason;
  if (s.hold < 0 || s.hold * s.rows > 128) return "hold = " + number(s.hold) + " steps of " + number(s.rows) + " rows; legal: 0 to 128 rows";
  if (s.hold && !form.columns) return "hold = " + number(s.hold) + ", but no column of this kernel is complete in a block; legal: 0";
  int64_t registers = registersOf(form, s), limit = std::min<int64_t>(kMaxRegisters, arch.registers / (s.threads * std::max<int64_t>(s.blocks, 1)));
  if (registers > limit)
    return "about " + number(registers) + " registers a thread; " + number(s.threads) + " threads leave " + number(limit);
  return std::nullopt;
}

//===-- Single elements ---------------------------------------------------------------===//

Schedule unaligned(const Schedule& s) {
  Schedule single = s;
  single.tile = s.tile * s.vector;
  single.shared = s.shared * s.vector;
  single.vector = single.rows = 1;
  if (s.grid == 1) single.blocks = 1;  // else as many have to be there at once
  single.prefetch = 0;
  single.hold = 0;  // so many single elements have too many addresses
  return single;
}

}  // namespace normc::codegen::cuda
