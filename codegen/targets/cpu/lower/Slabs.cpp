// Slabs: which slabs of a phase are worked on together, and in which order.
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen {

PhaseLowering::PhaseLowering(Loops& loops, AccessLowering& frame)
    : SlabLowering(loops, frame),
      schedule_(*frame.kernel().getSchedule()),
      steps_{.rows = schedule_.getRows(), .unroll = schedule_.getUnroll()} {
  probeWidth_ = schedule_.getVector();
  slowRoots_ = true;
  headRounds_ = 2;
}

void PhaseLowering::run() {
  std::tie(begin_, end_) = f_.range();
  if (takesChannels() && !f_.phase().getBySegment()) takeWholeSegments();
  allocateBuffer();
  allocatePlaces();
  allocateKept();
  zeroPartials();
  if (schedule_.getStream()) large_ = largeCall();
  countRows();
  Replica phase;
  phase.at.chunk = f_.task();
  for (Operation& op : f_.phase().getBody().front()) {
    if (auto s = dyn_cast<SlabOp>(op)) {
      shared_ = phase.values;
      slab(s);
    } else {
      lanes_ = 0;
      scalarOp(op, phase);
    }
  }
  if (Value weak = stage_ || large_.leads ? large_.pastCaches : large_.nonTemporal)
    l_.when(weak, {}, [&] {
      orderStores();
      return Values();
    });
}

/// True if a task has rows of every feature, with layout channels_first.
bool PhaseLowering::takesChannels() { return !f_.featuresLast() && f_.phase().hasUnits(Axis::Row); }

/// The number of segments from which on a segment is never divided between tasks.
static constexpr int64_t kManySegments = 16;

/// Gives a task the segments that begin in its range, so that runs stay whole, unless there are few segments
/// with more rows than a task. Pieces of 4 KiB of each run took 1.7 times as long in memory as whole runs.
/// Across channels runs that are longer than a piece are not whole anyway.
void PhaseLowering::takeWholeSegments() {
  Value rows = l_.max(f_.rows(), l_.index(1)), units = f_.units();
  Value pays = l_.less(f_.segments(), l_.index(kManySegments));
  if (llvm::any_of(f_.phase().getOps<SlabOp>(), [](SlabOp s) { return s.isAcrossChannels(); }))
    pays = arith::OrIOp::create(l_.b, l_.loc, pays,
                                l_.less(l_.index(PieceMemory::mostRows(f_.statistics())), rows));
  Value cuts = l_.both(l_.less(f_.chunkUnits(), rows), pays);
  auto rounded = [&](Value unit) {
    Value up = l_.mul(l_.div(l_.add(unit, l_.sub(rows, l_.index(1))), rows), rows);
    return l_.select(cuts, unit, l_.min(up, units));
  };
  begin_ = rounded(begin_);
  end_ = rounded(end_);
}

/// Clears every partial of the task, also if the task has no row.
void PhaseLowering::zeroPartials() {
  llvm::SetVector<Operation*> partials;
  f_.phase()->walk([&](Operation* op) {
    if (auto sweep = dyn_cast<SweepOp>(op))
      for (auto name : sweep.getPartials().getAsRange<FlatSymbolRefAttr>())
        partials.insert(f_.tensor(name.getValue()));
    if (auto add = dyn_cast<AccumulateOp>(op)) partials.insert(f_.tensor(add.getTensor()));
  });
  int64_t lanes = schedule_.getVector();
  Value zeros = l_.zero(VectorType::get({lanes}, f_.statistics()));
  for (Operation* op : partials) {
    auto t = cast<TensorOp>(op);
    Value base = f_.address(t, {.feature = l_.index(0)}), whole = l_.roundDown(f_.features(), lanes);
    l_.forEach(l_.index(0), whole, lanes, [&](Value j) { f_.store(t, l_.add(base, j), zeros, {}); });
    l_.forEach(whole, f_.features(), 1,
               [&](Value j) { f_.store(t, l_.add(base, j), l_.zero(f_.statistics()), {}); });
  }
}

void PhaseLowering::slab(SlabOp s) {
  slab_ = s;
  kind_ = s.getKind();
  lanes_ = kind_ == Kind::Column ? schedule_.getVector() : 0;
  laneMask_ = {};
  if (kind_ == Kind::Column) shareUniform(s);
  if (isAcrossChannels()) allocatePiece(s);
  if (kind_ == Kind::Column && !isAcrossChannels()) allocateShifts(s);
  Value begin = begin_, end = s.getHead() ? headEnd(begin_, end_, *s.getHead()) : end_;
  if (s.isSplit()) {
    begin = l_.index(0);
    end = l_.mul(f_.segments(), f_.rows());
  }
  if (s.isOfRows()) {
    begin = l_.index(0);
    end = f_.features();
  }
  llvm::SaveAndRestore keeps(keeps_, keptBy(s, steps_.rows));
  const bool once = kind_ == Kind::Column && !isAcrossChannels();
  if (!large_.is || s.getHead() || !s.hasSweeps() || once) return lower(s, begin, end);
  // Which version runs depends on sizes alone, and so does the order of all sums.
  l_.when(large_.is, {}, [&] {
    const int64_t rows = largeRows(s), unroll = largeUnroll(rows);
    auto inSteps = [&](int64_t of) {
      llvm::SaveAndRestore version(steps_, {.rows = of, .unroll = unroll, .large = true});
      llvm::SaveAndRestore keepsMany(keeps_, keptBy(s, of));
      lower(s, begin, end);
    };
    llvm::SaveAndRestore large(steps_.large, true);
    if (kind_ == Kind::Run) return cutRuns([&] { inSteps(rows); }, [&] { inSteps(1); });
    inSteps(rows);
    return Values();
  });
  l_.when(l_.isFalse(large_.is), {}, [&] {
    lower(s, begin, end);
    return Values();
  });
}

/// Emits the memory of the slab that keeps elements, for the longer of its steps that do.
void PhaseLowering::allocateKept() {
  for (auto s : f_.phase().getOps<SlabOp>()) {
    if (kept_ || s.getKind() != Kind::Run) continue;
    llvm::SaveAndRestore current(slab_, s);
    kept_.emplace(s);
    int64_t runs = 0;
    for (const int64_t step : {schedule_.getRows(), schedule_.getStream()})
      if (keptBy(s, step)) runs = std::max(runs, step);
    if (runs)
      kept_->allocate(l_, f_.statistics(), runs, *Loops::constant(runWidth()), schedule_.getVector());
    else
      kept_.reset();
  }
}

KeptElements* PhaseLowering::keptBy(SlabOp s, int64_t runs) {
  const bool serves = kept_ && kept_->isOf(s) && runs && !(schedule_.getAhead() && runs > 1) &&
                      kept_->serve(runs, Loops::constant(runWidth()));
  return serves ? &*kept_ : nullptr;
}

/// Emits the scalar code that is the same for all features once, before the loop over features. LLVM does not
/// move loads, and what depends on them, out of the loop, since the stores in it may change their memory.
void PhaseLowering::shareUniform(SlabOp s) {
  llvm::SaveAndRestore scalars(lanes_, int64_t(0));
  Replica once;
  once.at.chunk = f_.task();
  once.values = shared_;
  for (Operation& op : s.getBody().front()) {
    auto load = dyn_cast<LoadOp>(op);
    auto count = dyn_cast<CountOp>(op);
    const bool uniform = load    ? f_.tensor(load.getTensor()).getAxes().empty()
                         : count ? count.getScope() != CountScope::Slab
                                 : isa<ScalarOp, WidthOp>(op) || isMemoryEffectFree(&op);
    if (uniform && op.getNumResults() && op.getNumRegions() == 0 &&
        llvm::all_of(op.getOperands(), [&](Value v) { return once.values.contains(v); }))
      scalarOp(op, once);
  }
  shared_ = once.values;
}

/// Lowers units that are runs or blocks of a segment segment by segment, if rows are searched in each.
void PhaseLowering::lower(SlabOp s, Value begin, Value end) {
  const bool searches = searchesRows(s);
  if (searches && !s.isPer(Axis::Segment)) (void)validPlaces({});
  if (!searches || !s.isPer(Axis::Segment) || kind_ == Kind::Column || f_.phase().getUnits().size() != 2)
    return lowerUnits(s, begin, end);
  const Value units = unitsOfSegment(f_.phase().getUnits()[1]);
  Value last = l_.div(l_.add(end, l_.sub(units, l_.index(1))), units);
  l_.forEach(l_.div(begin, units), last, 1, [&](Value segment) {
    llvm::SaveAndRestore current(segment_, segment);
    (void)validPlaces(segment);
    Value first = l_.mul(segment, units), after = l_.add(first, units);
    lowerUnits(s, l_.max(begin, first), l_.min(end, after));
  });
}

void PhaseLowering::lowerUnits(SlabOp s, Value begin, Value end) {
  switch (kind_) {
    case Kind::Run:
      return runSlabs(s, begin, end);
    case Kind::Block:
      return blocks(s, begin, end);
    case Kind::Column:
      return columns(s, begin, end);
    case Kind::Stream:
      return stream(s, begin, end);
  }
}

//===-- Runs --------------------------------------------------------------------===//

void PhaseLowering::runSlabs(SlabOp s, Value begin, Value end) {
  const int64_t together = steps_.rows;
  Value whole = l_.add(begin, l_.roundDown(l_.sub(end, begin), together));
  auto runsFrom = [&](Value unit, int64_t count) {
    llvm::SaveAndRestore next(next_, unitToPrefetch(unit, count));
    runsOfUnits(s, unitsFrom(unit, count));
  };
  if (isAhead() && groupsOf(s) == 1)
    runsAhead(s, begin, whole, together,
              [&](Value unit) { return runReplicas(s, unitsFrom(unit, together), l_.index(0)); });
  else
    l_.forEach(begin, whole, together, [&](Value unit) { runsFrom(unit, together); });
  if (together > 1) l_.forEach(whole, end, 1, [&](Value unit) { runsFrom(unit, 1); });
}

Value PhaseLowering::unitToPrefetch(Value unit, int64_t count) {
  return steps_.large && schedule_.getFetch() ? l_.add(unit, l_.index(count)) : Value();
}

SmallVector<Coordinates> PhaseLowering::unitsFrom(Value unit, int64_t count) {
  SmallVector<Coordinates> at;
  for (int64_t r = 0; r < count; ++r) at.push_back(unitCoordinates(l_.add(unit, l_.index(r))));
  return at;
}

int64_t PhaseLowering::groupsOf(SlabOp s) { return f_.featuresLast() ? f_.groups(s.groupAxis()) : 1; }

void PhaseLowering::runsOfUnits(SlabOp s, ArrayRef<Coordinates> units) {
  Value none = l_.index(0), groups = l_.index(groupsOf(s));
  if (isAhead() && units.size() > 1 && groupsOf(s) > 1)
    return runsAhead(s, none, groups, 1, [&](Value group) { return runReplicas(s, units, group); });
  l_.forEach(none, groups, 1, [&](Value group) {
    Replicas replicas = runReplicas(s, units, group);
    body(s, replicas);
  });
}

PhaseLowering::Replicas PhaseLowering::runReplicas(SlabOp s, ArrayRef<Coordinates> units, Value group) {
  runBegin_ = s.isSplit()         ? begin_
              : f_.featuresLast() ? l_.mul(group, f_.groupWidth(s.groupAxis()))
                                  : l_.index(0);
  Replicas replicas(units.size());
  for (auto [i, r, unit] : llvm::enumerate(replicas, units)) {
    r.index = int64_t(i);
    r.at = unit;
    r.at.group = group;
    r.values = shared_;
  }
  return replicas;
}

void PhaseLowering::blocksOfRuns(BlocksOp op, Replica& all, Replicas& replicas,
                                 llvm::function_ref<void(Operation&)> code) {
  const Value begin = runBegin_, width = f_.blockWidth(), end = l_.add(begin, runWidth());
  l_.forEach(begin, end, *f_.kernel().getBlock(), [&](Value first) {
    llvm::SaveAndRestore run(runBegin_, first);
    llvm::SaveAndRestore narrow(blockWidth_, width);
    const Value block = l_.div(first, width);
    all.at.block = block;
    for (Replica& r : replicas) r.at.block = block;
    for (Operation& inner : op.getBody().front()) code(inner);
  });
}

//===-- Blocks --------------------------------------------------------------------===//

void PhaseLowering::blocks(SlabOp s, Value begin, Value end) {
  auto blocksFrom = [&](Value unit, int64_t count) {
    Replicas replicas(count);
    for (auto [r, at] : llvm::zip(replicas, unitsFrom(unit, count))) {
      r.at = at;
      r.values = shared_;
    }
    bool grouped = s.isPer(Axis::Group) && f_.featuresLast();
    runBegin_ = grouped ? l_.mul(replicas[0].at.group, f_.groupWidth(Axis::Group)) : l_.index(0);
    body(s, replicas);
  };
  int64_t together = s.isPer(Axis::Segment) ? 1 : steps_.rows;
  Value whole = l_.add(begin, l_.roundDown(l_.sub(end, begin), together));
  l_.forEach(begin, whole, together, [&](Value unit) { blocksFrom(unit, together); });
  if (together > 1) l_.forEach(whole, end, 1, [&](Value unit) { blocksFrom(unit, 1); });
}

//===-- Streams -------------------------------------------------------------------===//

void PhaseLowering::stream(SlabOp s, Value begin, Value end) {
  for (Operation& op : s.getBody().front())
    if (auto sweep = dyn_cast<SweepOp>(op))
      f_.featuresLast() ? streamSweep(sweep, begin, end) : channelStreamSweep(sweep, begin, end);
}

void PhaseLowering::body(SlabOp s, Replicas& replicas) {
  if (kind_ != Kind::Column && replicas.size() > 1 && schedule_.getVector() > 1) {
    Replica all = replicas[0];
    for (Operation& op : s.getBody().front()) sideBySide(op, all, replicas);
    return;
  }
  auto code = [&](auto& self, Operation& op) -> void {
    if (op.getNumResults() && shared_.contains(op.getResult(0))) return;
    auto sweep = dyn_cast<SweepOp>(op);
    if (auto blocks = dyn_cast<BlocksOp>(op)) {
      blocksOfRuns(blocks, replicas[0], replicas, [&](Operation& inner) { self(self, inner); });
    } else if (auto probe = dyn_cast<ProbeOp>(op); probe && shifts_ && replicas.size() > 1) {
      probeTile(probe, replicas);
    } else if (!sweep) {
      for (Replica& r : replicas) {
        maskOf(r, replicas);
        scalarOp(op, r);
      }
    } else if (kind_ == Kind::Run) {
      runSweep(sweep, replicas);
    } else if (kind_ == Kind::Block) {
      s.isPer(Axis::Segment) ? blockSweep(sweep, replicas) : channelSweep(sweep, replicas);
    } else {
      columnSweep(sweep, replicas);
    }
  };
  for (Operation& op : s.getBody().front()) code(code, op);
}

}  // namespace normc::codegen
