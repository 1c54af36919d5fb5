#include "codegen/targets/cuda/FusePhases.h"
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace normc::codegen::cuda {

TeamLowering::TeamLowering(Loops& loops, Frame& frame, const Schedule& schedule, const Launch& launch,
                           gpu::GPUFuncOp function)
    : Walk(loops, frame), s_(schedule), launch_(launch), function_(function) {
  foldBatch_ = 8;
}

Value blockIn(Loops& l, PhaseOp phase, gpu::Dimension dimension) {
  Value block = gpu::BlockIdOp::create(l.b, l.loc, dimension);
  if (!readsAgain(phase)) return block;
  Value blocks = gpu::GridDimOp::create(l.b, l.loc, dimension);
  return l.sub(l.sub(blocks, l.index(1)), block);
}

void TeamLowering::run() {
  thread_ = gpu::ThreadIdOp::create(l_.b, l_.loc, gpu::Dimension::x);
  columnBlock_ = launch_.columns ? blockIn(l_, f_.phase(), gpu::Dimension::y) : l_.index(0);
  rank_ = clustered() ? Value(gpu::ClusterBlockIdOp::create(l_.b, l_.loc, gpu::Dimension::x))
          : gridded() ? l_.rem(gpu::BlockIdOp::create(l_.b, l_.loc, gpu::Dimension::x), l_.index(launch_.grid))
                      : l_.index(0);
  beginMeetings();
  std::tie(begin_, end_) = f_.range();
  alike_ = f_.access().peeled && takesRowsAlike(f_.phase(), s_);
  if (alike_) beginAlike();
  for (TensorOp t : f_.kernel().getOps<TensorOp>()) {
    if (!t.isXSized() || !t.info() || !t.info()->mayBeLeftOut()) continue;
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, f_.pointer(t));
    stored_[t.getSymName()] = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::ne, address, l_.index(0));
  }
  zeroPartials();
  if (clustered()) arriveAtCluster(l_.b, l_.loc);  // what is in memory is written, and this block's is there to write to
  countRows();
  Replica phase;
  phase.at.chunk = f_.task();
  bool first = true;
  for (Operation& op : f_.phase().getBody().front()) {
    auto s = dyn_cast<SlabOp>(op);
    if (s && s->hasAttr(aheadAttrName())) {
      before_.push_back(s);
    } else if (s) {
      // What one slab left in memory, other threads of the next may read.
      if (clustered() && !first) arriveAtCluster(l_.b, l_.loc);
      if (clustered()) waitForCluster(l_.b, l_.loc);
      else if (!first) meet();
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

TeamLowering::Place TeamLowering::placeOf(int64_t team, int64_t groups) {
  Place p{.team = team, .span = team * groups};
  p.units = blockThreads() / p.span;
  p.unit = p.units == 1 ? l_.index(0) : l_.div(thread_, l_.index(p.span));
  // Of `thread % 32 + 96` LLVM makes `thread | 96`, which is no offset that an access could hold.
  auto inWarp = [&]() -> Value { return gpu::LaneIdOp::create(l_.b, l_.loc, l_.b.getIndexAttr(32)); };
  p.spanLane = p.units == 1 ? thread_ : p.span == 32 ? inWarp() : l_.rem(thread_, l_.index(p.span));
  p.lane = groups == 1 ? p.spanLane : l_.rem(p.spanLane, l_.index(team));
  p.lane = l_.add(l_.mul(rank_, l_.index(team)), p.lane);
  p.team = team * taskBlocks();
  return p;
}

/// Among those of all blocks of the task.
Value TeamLowering::threadOfTask() { return l_.add(l_.mul(rank_, l_.index(blockThreads())), thread_); }

/// The features that this block works on.
std::pair<Value, Value> TeamLowering::columnRange() {
  if (!launch_.columns) return {l_.index(0), f_.features()};
  Value begin = l_.mul(columnBlock_, l_.index(launch_.columns));
  return {begin, l_.min(l_.add(begin, l_.index(launch_.columns)), f_.features())};
}

/// How many features from `begin` on, at most a block's; a constant where every block has the same.
Value TeamLowering::columnCount(Value begin, Value end) {
  int64_t columns = columnsOf(s_);
  auto features = Loops::constant(f_.features());
  if (features && *features % columns == 0) return l_.index(columns);
  return l_.min(l_.index(columns), l_.sub(end, begin));
}

/// `yes`, or `no` in a block that only stands in for a phase without tasks.
Value TeamLowering::hasTask(Value yes, Value no) {
  return f_.phase()->hasAttr(leastBlocksAttrName()) ? l_.select(l_.less(begin_, end_), yes, no) : yes;
}

/// Every partial of the task starts at zero, also where the task has no row.
void TeamLowering::zeroPartials() {
  llvm::SetVector<Operation*> partials;
  f_.phase()->walk([&](Operation* op) {
    if (auto sweep = dyn_cast<SweepOp>(op))
      for (auto name : sweep.getPartials().getAsRange<FlatSymbolRefAttr>()) partials.insert(f_.tensor(name.getValue()));
    if (auto add = dyn_cast<AccumulateOp>(op)) partials.insert(f_.tensor(add.getTensor()));
  });
  if (partials.empty()) return;
  auto [begin, end] = columnRange();
  Value last = hasTask(end, begin);
  l_.forEach(l_.add(begin, threadOfTask()), last, blockThreads() * taskBlocks(), [&](Value feature) {
    for (Operation* op : partials) {
      auto t = cast<TensorOp>(op);
      f_.store(t, f_.address(t, {.feature = feature, .chunk = f_.task()}), l_.zero(f_.statistics()), {});
    }
  });
  if (gridded()) meet();
  else if (!clustered()) barrier();
}

void TeamLowering::slab(SlabOp s) {
  slab_ = s;
  kind_ = kindOf(s);
  lanes_ = 0;
  inside_ = {};
  if (!s.hasSweeps()) return vectors(s);
  switch (kind_) {
    case Kind::Line: return lines(s);
    case Kind::Block: return blocks(s);
    case Kind::Column: return columns(s);
    case Kind::Stream: return stream(s);
  }
}

Value TeamLowering::runWidth(SlabOp s) {
  if (!f_.featuresLast()) return f_.rows();
  if (s.isPer("pre_group")) return f_.groupWidth("pre_group");
  return s.isPer("group") ? f_.groupWidth("group") : f_.features();
}

/// The unit of replica r in a step that begins at `first`, or the last one and inactive.
void TeamLowering::seat(Replica& replica, Value first, int64_t r, Value end, llvm::function_ref<void(Value)> set) {
  replica.index = r;
  Value unit = l_.add(first, l_.add(place_.unit, l_.index(r * place_.units)));
  if (place_.units > 1 || s_.rows > 1 || s_.prefetch) {
    replica.active = l_.less(unit, end);
    unit = l_.min(unit, l_.sub(end, l_.index(1)));
  }
  set(unit);
}

//===-- Lines -------------------------------------------------------------------===//

void TeamLowering::lines(SlabOp s) {
  StringRef axis = s.isPer("pre_group") ? "pre_group" : "group";
  int64_t groups = f_.featuresLast() ? f_.groups(axis) : 1;
  bool together = groups == 1 || s_.threads % (s_.team * groups) == 0;
  place_ = placeOf(s_.team, together ? groups : 1);
  width_ = runWidth(s);
  auto runOf = [&](Value group) { runBegin_ = f_.featuresLast() ? l_.mul(group, f_.groupWidth(axis)) : l_.index(0); };
  Value mine = together && groups > 1 ? l_.div(place_.spanLane, l_.index(s_.team)) : l_.index(0);
  runOf(mine);
  if (alike_) return rowsAlike(s, [&] { linesFrom(s, together, mine); });
  linesFrom(s, together, mine);
}

/// The lines of the task; `mine` is the thread's group where all groups of a row are walked `together`.
void TeamLowering::linesFrom(SlabOp s, bool together, Value mine) {
  StringRef axis = s.isPer("pre_group") ? "pre_group" : "group";
  const int64_t groups = f_.featuresLast() ? f_.groups(axis) : 1;
  const Value end = s.getHead() ? headEnd(begin_, end_, *s.getHead()) : end_;
  computeBefore();
  if (together) loadVectors(s);
  beginPartials(s);
  holds_ = s.getResident() && s_.tile > 0;
  beginShared(s);
  auto seatsFrom = [&](Value first) {
    Replicas seats(s_.rows);
    for (int64_t r = 0; r < s_.rows; ++r)
      seat(seats[r], first, r, end, [&](Value unit) { seats[r].at = unitCoordinates(unit); });
    return seats;
  };
  const int64_t stride = place_.units * s_.rows;
  const SmallVector<TensorOp> tensors = readAlways(s);
  const bool prefetch = s_.prefetch == 1 && holds_ && together;
  const int64_t copied = holds_ && together ? copiedAhead(s_) : 0;
  auto later = [&](Value first, int64_t steps) { return l_.add(first, l_.index(steps * stride)); };
  if (prefetch) ahead_ = loadAhead(tensors, seatsFrom(begin_));
  if (copied && copiesInBulk(s_)) beginBulk();
  for (int64_t step = 0; step < copied; ++step) {
    copyRun(seatsFrom(later(begin_, step))[0], later(begin_, step), stride);
    copyAhead(tensors, seatsFrom(later(begin_, step)), later(begin_, step), stride);
  }
  steps(begin_, end, stride, {}, [&](Value first, Values&) {
    Replicas seats = seatsFrom(first);
    toldValues_ = 0;
    if (taskBlocks() > 1) clusterStep_ = l_.rem(l_.div(l_.sub(first, begin_), l_.index(stride)), l_.index(2));
    auto group = [&](Value g) {
      Replicas replicas = seats;
      for (Replica& r : replicas) {
        r.at.group = g;
        r.values = shared_;
      }
      held_.clear();
      peelRuns(replicas);
      if (prefetch) {  // the loads of the next step are under way while this one computes
        holdAhead(tensors, replicas.size());
        ahead_ = loadAhead(tensors, seatsFrom(later(first, 1)));
      }
      if (!sharedTensors_.empty()) sharedRun_ = sharedRunOf(first, stride);
      if (copied) {
        copyRun(seatsFrom(later(first, copied))[0], later(first, copied), stride);
        copyAhead(tensors, seatsFrom(later(first, copied)), later(first, copied), stride);
        takeAhead(tensors, replicas, first, stride);
      } else if (!sharedTensors_.empty()) {  // all of the run is under way before any of it is waited for
        copyRun(replicas[0], first, stride);
        endCopies(l_.b, l_.loc);
        fetch(tensors, replicas);
        waitForCopies(l_.b, l_.loc, 0);
      }
      int64_t before = barriers_;
      body(s, replicas);
      if (barriers_ - before == 1) barrier();  // the next step writes where slower threads may still read
    };
    if (together) group(mine);
    else
      l_.forEach(l_.index(0), l_.index(groups), 1, [&](Value g) {
        runBegin_ = f_.featuresLast() ? l_.mul(g, f_.groupWidth(axis)) : l_.index(0);
        group(g);
      });
  });
}

//===-- Blocks --------------------------------------------------------------------===//

void TeamLowering::blocks(SlabOp s) {
  place_ = placeOf(s_.team);
  width_ = runWidth(s);
  l_.forEach(begin_, end_, 1, [&](Value unit) {
    Replicas replicas(1);
    replicas[0].at = unitCoordinates(unit);
    replicas[0].values = shared_;
    bool grouped = s.isPer("group") && f_.featuresLast();
    runBegin_ = grouped ? l_.mul(replicas[0].at.group, f_.groupWidth("group")) : l_.index(0);
    beginPartials(s);
    body(s, replicas);
    barrier();
  });
}

//===-- Vectors -------------------------------------------------------------------===//

void TeamLowering::vectors(SlabOp s) {
  SmallVector<StringRef> units(f_.phase().getUnits().getAsValueRange<StringAttr>());
  bool own = units.size() == 1 && units[0] == "feature";
  auto [begin, end] = own ? std::pair{begin_, end_} : columnRange();
  auto features = [&, begin = begin, end = end](Coordinates at) {
    l_.forEach(l_.add(begin, threadOfTask()), end, blockThreads() * taskBlocks(), [&](Value feature) {
      Replicas replicas(1);
      replicas[0].at = at;
      replicas[0].at.feature = feature;
      replicas[0].values = shared_;
      body(s, replicas);
    });
  };
  if (!s.isPer("segment")) return features({.chunk = f_.task()});
  l_.forEach(begin_, end_, 1, [&](Value segment) { features({.segment = segment, .chunk = f_.task()}); });
}

/// Slabs over features that came before: this thread's columns, once, in registers.
void TeamLowering::computeBefore() {
  SlabOp current = slab_;
  for (SlabOp s : std::exchange(before_, {})) {
    slab_ = s;
    inBefore_ = true;
    SmallVector<TensorOp> kept;
    for (auto store : s.getOps<StoreOp>())
      if (TensorOp t = f_.tensor(store.getTensor()); t.getRole() == "workspace") kept.push_back(t);
    for (int64_t k = 0; k < s_.tile + endPositions(); ++k) {
      Position position = tilePosition(k);
      lanes_ = lanesAt(position);
      inside_ = position.inside;
      Replica column;
      column.index = k;
      column.at.feature = l_.add(runBegin_, position.offset);
      column.at.chunk = f_.task();
      column.values = shared_;
      knownInside(position, kept, [&] {
        for (Operation& op : s.getBody().front()) scalarOp(op, column);
      });
    }
    inBefore_ = false;
    lanes_ = 0;
    inside_ = {};
  }
  slab_ = current;
}

/// Vectors that an earlier phase left: this thread's columns, once, in registers. The phase before may still write
/// them when this one begins, so LLVM takes any store for one to them and would read them again each step. Columns of
/// peeled runs are others in each row; where rows begin alike it is every vector, whose accesses are single elements there.
void TeamLowering::loadVectors(SlabOp slab) {
  if (s_.tile == 0 || !f_.featuresLast() || (f_.access().peeled && !alike_)) return;
  for (auto sweep : slab.getOps<SweepOp>())
    for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>()) {
      TensorOp t = f_.tensor(name.getValue());
      if (!t.hasAxis("feature") || t.isXSized()) continue;
      if (!alike_ && (t.getRole() != "workspace" || t.getAxes().size() != 1)) continue;
      for (int64_t k = 0; k < s_.tile + endPositions(); ++k) {
        if (known_.lookup({t.getOperation(), k})) continue;
        const Position position = tilePosition(k);
        Coordinates at{.feature = l_.add(runBegin_, position.offset), .chunk = f_.task()};
        knownInside(position, t, [&] { known_[{t.getOperation(), k}] = f_.load(t, f_.address(t, at), lanesAt(position), {}); });
      }
    }
}

bool TeamLowering::kept(const Replica& replica, TensorOp t, Value v) {
  if (!inBefore_ || t.getRole() != "workspace") return false;
  known_[{t.getOperation(), replica.index}] = v;
  return true;
}

//===-- Streams -------------------------------------------------------------------===//

void TeamLowering::stream(SlabOp s) {
  place_ = placeOf(s_.team);
  auto [begin, end] = columnRange();
  runBegin_ = begin;
  width_ = columnCount(begin, end);
  if (alike_ && !s.getHead()) return rowsAlike(s, [&] { streamRows(s); });
  if (alike_) peelNone(s);
  streamRows(s);
}

void TeamLowering::streamRows(SlabOp s) {
  if (!alike_ || !s.getHead()) {
    computeBefore();
    loadVectors(s);
  }
  for (Operation& op : s.getBody().front()) {
    auto sweep = dyn_cast<SweepOp>(op);
    if (!sweep) continue;
    if (s.getHead()) {
      headRows(sweep, headEnd(begin_, end_, *s.getHead()), *s.getHead());
      continue;
    }
    Value last = end_;
    if (sweep.getCondition()) last = l_.select(mapped(sweep.getCondition(), shared_), end_, begin_);
    beginPartials(s);
    auto rowOf = [&](Value unit) {  // from the end of the task where that was read last
      return unitCoordinates(readsAgain(f_.phase()) ? l_.sub(l_.add(begin_, l_.sub(last, l_.index(1))), unit) : unit);
    };
    steps(begin_, last, place_.units * s_.rows, {}, [&](Value first, Values&) {
      Replicas rows(s_.rows);
      for (int64_t r = 0; r < s_.rows; ++r) {
        rows[r].values = shared_;
        seat(rows[r], first, r, last, [&](Value unit) { rows[r].at = rowOf(unit); });
      }
      streamStep(sweep, rows);
    });
  }
}

/// The first rows of the task, which one team sums alone: all at once where there are enough.
void TeamLowering::headRows(SweepOp sweep, Value last, int64_t head) {
  partials_.clear();
  sums_.clear();
  auto rowsFrom = [&](Value unit, int64_t n) {
    Replicas rows(n);
    for (int64_t r = 0; r < n; ++r) {
      rows[r].at = unitCoordinates(l_.add(unit, l_.index(r)));
      rows[r].values = shared_;
    }
    streamStep(sweep, rows);
  };
  l_.when(isZero(place_.unit), {}, [&] {
    Value most = l_.add(begin_, l_.roundDown(l_.sub(last, begin_), head));
    l_.forEach(begin_, most, head, [&](Value unit) { rowsFrom(unit, head); });
    l_.forEach(most, last, 1, [&](Value unit) { rowsFrom(unit, 1); });
    return Values();
  });
}

//===-- All of them ---------------------------------------------------------------===//

void TeamLowering::body(SlabOp s, Replicas& replicas) {
  if (kind_ != Kind::Line) held_.clear(), holds_ = false;
  if (holds_)
    for (auto probe : s.getOps<ProbeOp>()) fetch(f_.tensor(probe.getTensor()), replicas);
  for (Operation& op : s.getBody().front()) {
    auto sweep = dyn_cast<SweepOp>(op);
    if (sweep)
      for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>()) beforeRead(f_.tensor(name.getValue()));
    if (!sweep) {
      for (Replica& r : replicas) scalarOp(op, r);
    } else if (kind_ == Kind::Line) {
      lineSweep(sweep, replicas);
    } else if (kind_ == Kind::Block) {
      blockSweep(sweep, replicas);
    } else {
      arriveBefore(sweep);
      columnSweep(sweep, replicas);
    }
  }
  storeWaiting();
}

Value TeamLowering::isZero(Value index) {
  if (auto known = Loops::constant(index)) return l_.less(l_.index(-1), index);
  return arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, index, l_.index(0));
}

/// One thread stores; where all threads of a task run the same scalar code, at its end: state may be updated in place,
/// and all of them have to have read it.
void TeamLowering::once(const Replica& replica, TensorOp t, std::function<void()> store) {
  Value condition;
  bool wait = false;
  if (!slab_) {
    condition = both(isZero(threadOfTask()), launch_.columns ? isZero(columnBlock_) : Value());
    if (t.chunkPhase() < 0) condition = both(condition, isZero(f_.task()));
    else if (f_.phase()->hasAttr(leastBlocksAttrName())) condition = both(condition, l_.less(begin_, end_));
  } else if (inBefore_) {  // every block computes it, the first stores it
    condition = both(isZero(f_.task()), both(place_.units > 1 ? isZero(place_.unit) : Value(), inside_));
  } else if (slab_.hasSweeps()) {
    if (kind_ == Kind::Line) condition = both(isZero(place_.lane), replica.active);
    else if (kind_ == Kind::Block) condition = isZero(thread_);
    else condition = both(place_.units > 1 ? isZero(place_.unit) : Value(), inside_);
    wait = kind_ != Kind::Line;
    // What the tensor does not tell apart, the first says for all.
    bool partial = t.chunkPhase() >= 0;
    auto first = [&](StringRef axis, Value index) {
      if (!partial && index && slab_.isPer(axis) && !t.hasAxis(axis)) condition = both(condition, isZero(index));
    };
    first("feature", kind_ == Kind::Column ? l_.add(replica.at.feature, place_.lane) : replica.at.feature);
    first("group", replica.at.group);
  }
  if (wait) waiting_.push_back({t, condition, std::move(store)});
  else storeWhere(condition, store);
}

void TeamLowering::storeWhere(Value condition, llvm::function_ref<void()> store) {
  if (!condition) return store();
  l_.when(condition, {}, [&] {
    store();
    return Values();
  });
}

void TeamLowering::storeWaiting() {
  if (waiting_.empty()) return;
  const bool arrived = std::exchange(arrived_, false);
  auto store = [&] {
    for (Waiting& w : std::exchange(waiting_, {})) storeWhere(w.condition, w.store);
  };
  if (!gridded() || !othersRead()) {
    if (!gridded()) meet();
    return store();
  }
  if (!arrived) arriveAtGrid();
  storeWhere(isZero(rank_), [&] {  // the first block alone has something to wait for
    waitForGrid();
    store();
  });
}

void TeamLowering::beforeRead(TensorOp t) {
  if (llvm::any_of(waiting_, [&](const Waiting& w) { return w.tensor == t; })) beginFold();
}

void TeamLowering::beginFold() {
  if (waiting_.empty()) return;
  storeWaiting();
  meet();
}

/// The next step may read what this one stores.
void TeamLowering::endFoldStep() { beginFold(); }

Value TeamLowering::both(Value a, Value b) {
  if (!a || !b) return a ? a : b;
  return arith::AndIOp::create(l_.b, l_.loc, a, b);
}

/// All threads of the block count together. A slab without sweeps may not wait: there each counts alone.
Value TeamLowering::countValid(Value begin, Value end, llvm::function_ref<Coordinates(Value)> place) {
  if (slab_) return Walk::countValid(begin, end, place);
  TensorOp mask = f_.tensor("mask");
  Value mine = l_.forEach(l_.add(begin, thread_), end, blockThreads(), ValueRange{l_.index(0)}, [&](Value i, ValueRange sum) {
    Value valid = f_.load(mask, f_.address(mask, place(i)), 0, {});
    return Values{l_.add(sum[0], l_.select(valid, l_.index(1), l_.index(0)))};
  })[0];
  // In two halves, each exact in f32.
  Value low = l_.rem(mine, l_.index(4096)), high = l_.div(mine, l_.index(4096));
  auto toFloat = [&](Value n) -> Value {
    return arith::SIToFPOp::create(l_.b, l_.loc, f_.statistics(), arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), n));
  };
  auto toIndex = [&](Value v) -> Value {
    return arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(), arith::FPToSIOp::create(l_.b, l_.loc, l_.b.getI64Type(), v));
  };
  SmallVector<Value> sums{toFloat(low), toFloat(high)};
  sumOverTeam(sums, blockThreads());
  barrier();
  return l_.add(toIndex(sums[0]), l_.mul(toIndex(sums[1]), l_.index(4096)));
}

}  // namespace normc::codegen::cuda
