// The walk over the slabs of a phase: which units a team takes, in which steps, and when scalar code stores.
#include "codegen/targets/cuda/FusePhases.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/ReadAhead.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "codegen/targets/cuda/Traits.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace normc::codegen::cuda {

TeamLowering::TeamLowering(Loops& loops, AccessLowering& frame, const Schedule& schedule,
                           const Launch& launch, gpu::GPUFuncOp function)
    : SlabLowering(loops, frame),
      k_(loops, frame, schedule, launch, function),
      s_(schedule),
      access_(RunAccess::make(k_, run_)),
      held_(k_, *access_),
      sharedRuns_(k_, *access_),
      sharedVectors_(k_, *access_),
      tree_(k_),
      partials_(k_, *access_, sharedRuns_, tree_),
      state_(k_, tree_) {
  foldBatch_ = 8;
  probedRows_ = 8;
}

/// True if the phase has one slab, of runs, whose sums blocks exchange.
static bool isOneOfRuns(PhaseOp phase) {
  auto slabs = llvm::to_vector(phase.getOps<SlabOp>());
  return slabs.size() == 1 && slabs[0].getKind() == SlabKind::Run && slabs[0].hasSweeps();
}

void TeamLowering::run() {
  std::tie(begin_, end_) = f_.range();
  access_->beginTask({begin_, end_});
  for (TensorOp t : f_.kernel().getOps<TensorOp>()) {
    if (!t.isXSized() || !t.info() || !t.info()->mayBeLeftOut()) continue;
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, f_.pointer(t));
    isPresent_[t.getSymName()] =
        arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::ne, address, l_.index(0));
  }
  const bool zeroes = zeroPartials();
  if (k_.clustered())
    arriveAtCluster(l_.b, l_.loc);  // what is in memory is written, and this block's is there to write to
  // A row that no other slab follows needs the other blocks in its meeting alone. Where it may begin
  // anywhere, that would take registers that it does not have.
  const bool late = k_.clustered() && !zeroes && isOneOfRuns(f_.phase()) && !f_.access().peeled;
  if (late) tree_.waitInTheFirstMeeting();
  countRows();
  Replica phase;
  phase.at.chunk = f_.task();
  bool first = true;
  for (Operation& op : f_.phase().getBody().front()) {
    auto s = dyn_cast<SlabOp>(op);
    if (s && s->hasAttr(hoistedAttrName())) {
      hoisted_.push_back(s);
    } else if (s) {
      // Other threads may read in the next slab what this one has stored.
      if (k_.clustered() && !first) arriveAtCluster(l_.b, l_.loc);
      if (k_.clustered() && !late)
        waitForCluster(l_.b, l_.loc);
      else if (!first)
        tree_.taskBarrier();
      first = false;
      shared_ = phase.values;
      slab(s);
      slab_ = {};
    } else {
      lanes_ = 0;
      scalarOp(op, phase);
    }
  }
}

void TeamLowering::letNextBegin() {
  partials_.beforeTheLastFlush([this] { letNextLaunchBegin(l_.b, l_.loc); });
}

/// Returns the features that this block works on.
std::pair<Value, Value> TeamLowering::columnRange() {
  if (!k_.launch.columns) return {l_.index(0), f_.features()};
  Value begin = l_.mul(k_.columnBlock, l_.index(k_.launch.columns));
  return {begin, l_.min(l_.add(begin, l_.index(k_.launch.columns)), f_.features())};
}

/// Returns how many features there are from `begin` on, at most a block's; a constant if every block has as
/// many.
Value TeamLowering::columnCount(Value begin, Value end) {
  int64_t columns = columnsOf(s_);
  auto features = Loops::constant(f_.features());
  if (features && *features % columns == 0) return l_.index(columns);
  return l_.min(l_.index(columns), l_.sub(end, begin));
}

/// Returns `yes`, or `no` in the block that a phase without tasks has (leastBlocksAttrName).
Value TeamLowering::hasTask(Value yes, Value no) {
  return f_.phase()->hasAttr(leastBlocksAttrName()) ? l_.select(l_.less(begin_, end_), yes, no) : yes;
}

/// Clears every partial of the task, at least if the task has no row. Returns whether there are any.
bool TeamLowering::zeroPartials() {
  llvm::SetVector<Operation*> partials;
  f_.phase()->walk([&](Operation* op) {
    if (auto sweep = dyn_cast<SweepOp>(op))
      for (TensorOp t : f_.tensors(sweep.getPartials())) partials.insert(t);
    if (auto add = dyn_cast<AccumulateOp>(op)) partials.insert(f_.tensor(add.getTensor()));
  });
  if (partials.empty()) return false;
  auto [begin, end] = columnRange();
  Value last = hasTask(end, begin);
  if (partials_.storesAll(f_.phase())) last = l_.select(l_.less(begin_, end_), begin, last);
  l_.forEach(l_.add(begin, k_.indexInTask()), last, k_.threads() * k_.taskBlocks(), [&](Value feature) {
    for (Operation* op : partials) {
      auto t = cast<TensorOp>(op);
      f_.store(t, f_.address(t, {.feature = feature, .chunk = f_.task()}), l_.zero(f_.statistics()), {});
    }
  });
  if (k_.gridded())
    tree_.taskBarrier();
  else if (!k_.clustered())
    k_.barrier();
  return true;
}

void TeamLowering::slab(SlabOp s) {
  slab_ = s;
  kind_ = s.getKind();
  lanes_ = 0;
  inside_ = {};
  if (!s.hasSweeps()) return vectors(s);
  switch (kind_) {
    case Kind::Run:
      return lines(s);
    case Kind::Block:
      return blocks(s);
    case Kind::Column:
      return columns(s);
    case Kind::Stream:
      return stream(s);
  }
}

void TeamLowering::beginRun(Value begin) { run_.begin = runBegin_ = begin; }

/// Runs `walk` for the units of the task, or for those of each class of its rows.
void TeamLowering::overClasses(SlabOp slab, llvm::function_ref<void(Units)> walk) {
  if (!access_->byClasses()) return walk({begin_, end_});
  access_->forEachClass([&](Units units) {
    held_.clearVectors();
    access_->beginClass(slab, unitCoordinates(l_.index(0)));
    walk(units);
    tree_.taskBarrier();  // in the next class other threads have a feature, in memory, too
  });
  held_.clearVectors();
}

Value TeamLowering::runWidth(SlabOp s) {
  if (!f_.featuresLast()) return f_.rows();
  if (s.isPer(Axis::PreGroup)) return f_.groupWidth(Axis::PreGroup);
  return s.isPer(Axis::Group) ? f_.groupWidth(Axis::Group) : f_.features();
}

/// Gives replica r its unit in the step that begins at `first`, or makes it inactive, at the last unit. `end`
/// null: the step is whole.
void TeamLowering::placeUnit(Replica& replica, Value first, int64_t r, Value end,
                             llvm::function_ref<void(Value)> set) {
  replica.index = r;
  Value unit = l_.add(first, l_.add(run_.place.unit, l_.index(r * run_.place.units)));
  if (end && (run_.place.units > 1 || s_.rows > 1 || r > 0 || s_.prefetch)) {
    replica.active = l_.less(unit, end);
    unit = l_.min(unit, l_.sub(end, l_.index(1)));
  }
  set(unit);
}

//===-- Vectors -------------------------------------------------------------------===//

void TeamLowering::vectors(SlabOp s) {
  if (const auto folds = foldsToDivide(s); k_.launch.slices > 1 && !folds.empty())
    return foldsInParts(s, folds);
  auto [begin, end] = f_.phase().isOverFeatures() ? std::pair{begin_, end_} : columnRange();
  auto features = [&, begin = begin, end = end](Coordinates at) {
    l_.forEach(l_.add(begin, k_.indexInTask()), end, k_.threads() * k_.taskBlocks(), [&](Value feature) {
      Replicas replicas(1);
      replicas[0].at = at;
      replicas[0].at.feature = feature;
      replicas[0].values = shared_;
      body(s, replicas);
    });
  };
  if (!s.isPer(Axis::Segment)) return features({.chunk = f_.task()});
  l_.forEach(begin_, end_, 1, [&](Value segment) { features({.segment = segment, .chunk = f_.task()}); });
}

/// Computes the slabs over features that were hoisted into this phase (FusePhases.h): for this thread's
/// columns, once.
void TeamLowering::computeHoisted() {
  llvm::SaveAndRestore current(slab_);
  llvm::SaveAndRestore lanes(lanes_);
  llvm::SaveAndRestore inside(inside_);
  for (SlabOp s : std::exchange(hoisted_, {})) {
    slab_ = s;
    SmallVector<TensorOp> kept;
    for (auto store : s.getOps<StoreOp>())
      if (TensorOp t = f_.tensor(store.getTensor()); t.isWorkspace()) kept.push_back(t);
    for (int64_t k = 0; k < access_->positions(); ++k) {
      Position position = access_->ofTile(k);
      lanes_ = access_->lanes(position);
      inside_ = position.inside;
      Replica column;
      column.index = k;
      column.at.feature = l_.add(runBegin_, position.offset);
      column.at.chunk = f_.task();
      column.values = shared_;
      held_.holdInside(position, kept, [&] {
        for (Operation& op : s.getBody().front()) scalarOp(op, column);
      });
    }
  }
}

/// True if the slab that is lowered was hoisted into this phase.
bool TeamLowering::isHoisted() const { return slab_ && slab_->hasAttr(hoistedAttrName()); }

bool TeamLowering::kept(const Replica& replica, TensorOp t, Value v) {
  if (!isHoisted() || !t.isWorkspace()) return false;
  held_.holdVector(t, replica.index, v);
  return true;
}

//===-- Streams -------------------------------------------------------------------===//

void TeamLowering::stream(SlabOp s) {
  run_.place = k_.placeOf(s_.team);
  auto [begin, end] = columnRange();
  beginRun(begin);
  run_.width = columnCount(begin, end);
  if (!s.getHead()) return overClasses(s, [&](Units units) { streamRows(s, units); });
  access_->beginElements(s);
  streamRows(s, {begin_, end_});
}

void TeamLowering::streamRows(SlabOp s, Units task) {
  if (!access_->byClasses() || !s.getHead()) {
    computeHoisted();
    held_.loadVectors(s);
  }
  for (Operation& op : s.getBody().front()) {
    auto sweep = dyn_cast<SweepOp>(op);
    if (!sweep) continue;
    if (s.getHead()) {
      headRows(sweep, headEnd(task.begin, task.end, *s.getHead()), *s.getHead());
      continue;
    }
    Value last = task.end;
    if (sweep.getCondition()) last = l_.select(mapped(sweep.getCondition(), shared_), task.end, task.begin);
    partials_.begin(s, task.begin);
    const int64_t together = partsOf(sweep).rowsTogether(s_.rows);
    auto rowOf = [&](Value unit) {  // backwards, if the phase before has read the end last
      return unitCoordinates(
          readsAgain(f_.phase()) ? l_.sub(l_.add(task.begin, l_.sub(last, l_.index(1))), unit) : unit);
    };
    auto rowsFrom = [&](Value first, int64_t count, Value end) {
      Replicas rows(count);
      for (int64_t r = 0; r < count; ++r) {
        rows[r].values = shared_;
        placeUnit(rows[r], first, r, end, [&](Value unit) { rows[r].at = rowOf(unit); });
      }
      return rows;
    };
    const int64_t stride = run_.place.units * together;
    // Congruent rows have their ends beside them, and no registers for a second loop; nor have columns of any
    // number.
    if (access_->byClasses() || !Loops::constant(f_.features())) {
      partials_.forEachStep({task.begin, last}, stride, {}, [&](Value first, Values&) {
        Replicas rows = rowsFrom(first, together, last);
        streamStep(sweep, rows);
      });
      continue;
    }
    // In a whole step every team has all of its rows, and none is asked for. In those that are left it has
    // one.
    const Value rest = l_.add(task.begin, l_.roundDown(l_.sub(last, task.begin), stride));
    // A step that is read ahead is whole, or behind the last one: then it has no address that is used.
    const auto stepFrom = [&](Value first) {
      Replicas rows = rowsFrom(first, together, {});
      for (Replica& row : rows) row.active = l_.less(first, rest);
      return rows;
    };
    const auto ahead = ReadAhead::make(together == s_.rows ? s_.prefetch : Prefetch(),
                                       {k_, *access_, held_, sharedRuns_}, s, {task.begin, stride, stepFrom});
    ahead->begin();
    partials_.forEachStep(
        {task.begin, rest}, stride, {},
        [&](Value first, Values&) {
          Replicas rows = rowsFrom(first, together, {});
          held_.clear();
          ahead->step(rows, first);
          streamStep(sweep, rows);
        },
        {}, &ahead->carried());
    held_.clear();
    partials_.forEachStep({rest, last}, run_.place.units, {}, [&](Value first, Values&) {
      Replicas rows = rowsFrom(first, 1, last);
      streamStep(sweep, rows);
    });
  }
}

/// Sums the pilot rows of the task in one team: all at once if there are enough.
void TeamLowering::headRows(SweepOp sweep, Value last, int64_t head) {
  partials_.beginNone();
  auto rowsFrom = [&](Value unit, int64_t n) {
    Replicas rows(n);
    for (int64_t r = 0; r < n; ++r) {
      rows[r].at = unitCoordinates(l_.add(unit, l_.index(r)));
      rows[r].values = shared_;
    }
    streamStep(sweep, rows);
  };
  l_.when(k_.isZero(run_.place.unit), {}, [&] {
    Value most = l_.add(begin_, l_.roundDown(l_.sub(last, begin_), head));
    l_.forEach(begin_, most, head, [&](Value unit) { rowsFrom(unit, head); });
    l_.forEach(most, last, 1, [&](Value unit) { rowsFrom(unit, 1); });
    return Values();
  });
}

//===-- Bodies --------------------------------------------------------------------===//

void TeamLowering::body(SlabOp s, Replicas& replicas) {
  if (kind_ != Kind::Run) held_.clear();
  if (holds())
    for (auto probe : s.getOps<ProbeOp>())
      for (StringRef name : probe.tensors())
        if (TensorOp t = f_.tensor(name); t.isXSized()) held_.fetch(t, replicas);
  for (Operation& op : s.getBody().front()) code(op, replicas);
  state_.storeAll();
}

void TeamLowering::code(Operation& op, Replicas& replicas) {
  if (auto blocks = dyn_cast<BlocksOp>(op)) return blocksOfRun(blocks, replicas);
  auto sweep = dyn_cast<SweepOp>(op);
  if (!sweep) {
    for (Replica& r : replicas)
      if (auto load = dyn_cast<LoadOp>(op); !load || !r.values.contains(load.getValue())) scalarOp(op, r);
    return;
  }
  for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>()) beforeRead(f_.tensor(name.getValue()));
  if (kind_ == Kind::Run) return lineSweep(sweep, replicas);
  if (kind_ == Kind::Block) return blockSweep(sweep, replicas);
  state_.beforeSweep(sweep);
  columnSweep(sweep, replicas);
}

/// Lets one thread store. If all threads of a task run the same scalar code, the store is deferred to its
/// end: state may be updated in place, and all of them must have read it.
void TeamLowering::once(const Replica& replica, TensorOp t, std::function<void()> store) {
  Value condition;
  bool wait = false;
  if (!slab_) {
    condition = l_.both(k_.isZero(k_.indexInTask()), k_.launch.columns ? k_.isZero(k_.columnBlock) : Value());
    if (t.chunkPhase() < 0)
      condition = l_.both(condition, k_.isZero(f_.task()));
    else if (f_.phase()->hasAttr(leastBlocksAttrName()))
      condition = l_.both(condition, l_.less(begin_, end_));
  } else if (isHoisted()) {  // every block computes it, the first one stores
    condition = l_.both(k_.isZero(f_.task()),
                        l_.both(run_.place.units > 1 ? k_.isZero(run_.place.unit) : Value(), inside_));
  } else if (slab_.hasSweeps()) {
    if (kind_ == Kind::Run)
      condition = l_.both(k_.isZero(run_.place.lane), replica.active);
    else if (kind_ == Kind::Block)
      condition = k_.isZero(k_.thread);
    else
      condition = l_.both(run_.place.units > 1 ? k_.isZero(run_.place.unit) : Value(), inside_);
    wait = kind_ != Kind::Run;
    // Along an axis that the tensor does not have, the first index stores.
    bool partial = t.chunkPhase() >= 0;
    auto first = [&](Axis axis, Value index) {
      if (!partial && index && slab_.isPer(axis) && !t.hasAxis(axis))
        condition = l_.both(condition, k_.isZero(index));
    };
    first(Axis::Feature,
          kind_ == Kind::Column ? l_.add(replica.at.feature, run_.place.lane) : replica.at.feature);
    if (!t.hasAxis(Axis::Block)) first(Axis::Group, replica.at.group);  // blocks lie in groups
  }
  if (wait)
    state_.defer(t, condition, std::move(store));
  else
    k_.storeWhere(condition, store);
}

/// Counts with all threads of the block. A slab without sweeps must not wait, so there each thread counts
/// alone.
Value TeamLowering::countValid(Value begin, Value end, llvm::function_ref<Coordinates(Value)> place) {
  if (slab_) return SlabLowering::countValid(begin, end, place);
  TensorOp mask = f_.tensor("mask");
  Value mine = l_.forEach(l_.add(begin, k_.thread), end, k_.threads(), ValueRange{l_.index(0)},
                          [&](Value i, ValueRange sum) {
                            Value valid = f_.load(mask, f_.address(mask, place(i)), 0, {});
                            return Values{l_.add(sum[0], l_.select(valid, l_.index(1), l_.index(0)))};
                          })[0];
  // The sum of two halves, each exact in f32.
  Value low = l_.rem(mine, l_.index(4096)), high = l_.div(mine, l_.index(4096));
  auto toFloat = [&](Value n) -> Value {
    return arith::SIToFPOp::create(l_.b, l_.loc, f_.statistics(),
                                   arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), n));
  };
  auto toIndex = [&](Value v) -> Value {
    return arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(),
                                      arith::FPToSIOp::create(l_.b, l_.loc, l_.b.getI64Type(), v));
  };
  SmallVector<Value> sums{toFloat(low), toFloat(high)};
  tree_.overTeam(sums, k_.threads());
  k_.barrier();
  return l_.add(toIndex(sums[0]), l_.mul(toIndex(sums[1]), l_.index(4096)));
}

}  // namespace normc::codegen::cuda
