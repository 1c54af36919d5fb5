#include "codegen/lower/PhaseLowering.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace normc::codegen {

/// Steps after which accumulators are added to a second level, so that the error
/// of a long sum grows with the logarithm of its length rather than the length.
static constexpr int64_t kFlushSteps = 32;
/// The same for the rows of a column, half as many of rows that are not added in pairs first, and of a block; and, of a
/// column of a whole batch, for what so many of those left, a third level.
static constexpr int64_t kFlushColumnRows = 16, kFlushBlockRows = 32, kFlushColumns = 64;
/// Steps of a run whose sums begin anew: the run of one segment may be all there is.
static constexpr int64_t kLongRunSteps = kFlushSteps * kFlushSteps;
/// Features of a stream that are worked on at a time: their partials stay in L1. Fewer in a call that is not large: there
/// the rows below each other do so, too, while a large one wants long pieces of a row.
static constexpr int64_t kStreamTile = 1024, kCachedTile = 512;
/// What a page holds, and how far the sums of a stream keep from x and from each other in it, in bytes. A load waits for
/// a store before it whose address is the same within a page: a store must not run just ahead of a stream of loads.
static constexpr int64_t kPageBytes = 4096, kApartBytes = 1024;
/// Steps of a stream whose sums are collected before they are added to the partials; half as many of single rows, whose
/// terms are not added in pairs first.
static constexpr int64_t kFlushStreamSteps = 16;
/// Vectors of a step that writes one line of several.
static constexpr int64_t kTurnUnroll = 4;

struct PhaseLowering::Sweep : SweepParts {
  explicit Sweep(SweepParts parts) : SweepParts(std::move(parts)) {}
  bool buffered = false;         ///< partials go to the stream's buffer first
  bool stores = true;            ///< what is written, is in this pass
  bool collects = true;          ///< and what is added to partials
  bool writesNow() const { return stores && !writes.empty(); }
  /// Stores wait until everything of a step has been loaded, since an output may be the input's own memory.
  struct Pending {
    TensorOp tensor;
    Value address, value, mask;
    size_t replica = 0, order = 0;
  };
  SmallVector<Pending> pending;
  /// What one line stores follows each other, so that it leaves the core line by line.
  void sort() {
    llvm::sort(pending, [](const Pending& a, const Pending& b) {
      return std::pair(a.replica, a.order) < std::pair(b.replica, b.order);
    });
  }
  void flush(Frame& f, bool past = false) {
    sort();
    for (Pending& p : pending) f.store(p.tensor, p.address, p.value, p.mask, {}, past && p.tensor.isXSized());
    pending.clear();
  }
  void flushPast(Frame& f, Loops& l, Value past) {
    auto none = [] { return Values(); };
    auto all = pending;
    l.when(past, {}, [&] { return flush(f, true), none(); });
    pending = all;
    l.when(l.isFalse(past), {}, [&] { return flush(f), none(); });
  }
};

/// A scalar term, or one of fewer lanes, to be added to a vector of sums.
Value PhaseLowering::inFirstLanes(Value term) {
  Value zeros = l_.zero(VectorType::get({int64_t(schedule_.getVector())}, getElementTypeOrSelf(term.getType())));
  if (isa<VectorType>(term.getType()))
    return vector::InsertStridedSliceOp::create(l_.b, l_.loc, term, zeros, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
  return vector::InsertOp::create(l_.b, l_.loc, term, zeros, ArrayRef<int64_t>{0});
}

/// One step: `lanes` elements from `offset` on, for every replica. `common` is what replicas share, once it is loaded.
void PhaseLowering::element(Sweep& s, MutableArrayRef<Replica> replicas, Value offset, int64_t lanes, Value mask,
                            MutableArrayRef<Value> sums, unsigned stride, MutableArrayRef<Value> common) {
  Block& body = s.op.getBody().front();
  SmallVector<Value> ownCommon(s.reads.size());
  if (common.empty()) common = ownCommon;
  bool column = kind_ == Kind::Column;
  SmallVector<SmallVector<Value>> contributions(s.partials.size());
  auto place = [&](const Replica& r) {
    Coordinates at = r.at;
    if (column) at.row = offset;
    else (f_.featuresLast() ? at.feature : at.row) = l_.add(runBegin_, offset);
    return at;
  };
  // The head of a task is summed for its mean, a shift that no single row should move.
  bool robust = slab_.getHead() && replicas.size() == 8 && !f_.kernel().hasMask();
  auto together = [&](ArrayRef<Value> rows) { return robust ? l_.scale(l_.middle(rows), 8) : l_.tree(rows); };
  for (auto [r, replica] : llvm::enumerate(replicas)) {
    Coordinates at = place(replica);
    for (auto [i, t] : llvm::enumerate(s.reads)) {
      if (s.hoisted[i]) continue;
      Value v = s.shared[i] ? common[i] : Value();
      if (!v) {
        int64_t width = column && !t.hasAxis("feature") ? 0 : lanes;
        v = f_.load(t, f_.address(t, at), width, width ? mask : Value());
        common[i] = v;
      }
      replica.values.map(body.getArgument(i), v);
    }
    for (Operation& op : body.without_terminator()) clone(op, replica.values);
    auto yielded = cast<YieldOp>(body.getTerminator()).getValues();
    auto value = [&](unsigned i) { return l_.broadcast(mapped(yielded[i], replica.values), lanes); };
    unsigned next = 0;
    for (TensorOp t : s.writes) {
      if (s.stores) s.pending.push_back({t, f_.address(t, at), value(next), mask, r, s.pending.size()});
      ++next;
    }
    unsigned slot = r * s.slots * stride;
    auto add = [&](Value v) {
      if (mask && !column) v = l_.select(mask, v, l_.zero(v.getType()));
      if (lanes != schedule_.getVector() && !column) v = inFirstLanes(v);
      sums[slot] = sums[slot] ? l_.addf(sums[slot], v) : v;
      slot += stride;
    };
    for (size_t k = 0; k < s.op.getSums().size(); ++k) add(value(next++));
    for (size_t k = 0; k < s.partials.size() && s.collects; ++k) {
      if (s.runPartial[k]) add(value(next++));
      else contributions[k].push_back(value(next++));
    }
  }
  for (auto [k, t] : llvm::enumerate(s.partials)) {
    if (s.runPartial[k] || !s.collects) continue;
    if (s.buffered) {
      Value at = inBuffer(k, offset);
      storeBuffer(at, l_.addf(loadBuffer(at, lanes), together(contributions[k])));
      continue;
    }
    Value address = f_.address(t, place(replicas[0]));
    Value sum = l_.addf(f_.load(t, address, lanes, mask), together(contributions[k]));
    s.pending.push_back({t, address, sum, mask, replicas.size(), s.pending.size()});
  }
}

/// Inputs of the next step, where outputs of this one lie, or what a stream reads alone. Reading waits for nothing but
/// memory then, and an access that is not there in time delays none that is.
void PhaseLowering::fetchNext(size_t rows, Value offset, int64_t elements) {
  llvm::SetVector<Operation*> inputs;
  for (auto sweep : slab_.getOps<SweepOp>())
    for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>())
      if (TensorOp t = f_.tensor(name.getValue()); t.isXSized()) inputs.insert(t);
  for (size_t r = 0; r < rows; ++r) {
    Coordinates at = unitCoordinates(l_.add(next_, l_.index(int64_t(r))));
    (f_.featuresLast() ? at.feature : at.row) = l_.add(runBegin_, offset);
    for (Operation* op : inputs) {
      auto t = cast<TensorOp>(op);
      Value first = f_.address(t, at);
      const int64_t line = kLine * 8 / t.getType().getIntOrFloatBitWidth();
      for (int64_t i = 0; i < elements; i += line) f_.fetch(t, l_.add(first, l_.index(i)));
    }
  }
}

Values PhaseLowering::along(Sweep& s, MutableArrayRef<Replica> replicas, Value width, Values sums) {
  int64_t lanes = schedule_.getVector(), unroll = unroll_, step = lanes * unroll;
  auto steps = [&](Value begin, Value end, int64_t vectors, ValueRange from) {
    return l_.forEach(begin, end, vectors * lanes, from, [&](Value j, ValueRange running) {
      Values next(running);
      if (next_ && (kind_ == Kind::Stream || s.writesNow())) fetchNext(replicas.size(), j, vectors * lanes);
      for (int64_t u = 0; u < vectors; ++u)
        element(s, replicas, l_.add(j, l_.index(u * lanes)), lanes, {}, MutableArrayRef<Value>(next).drop_front(sums.empty() ? 0 : u), unroll);
      if (inLarge_ && past_ && vectors % linesUnroll() == 0 && s.writesNow()) s.flushPast(f_, l_, past_);
      else s.flush(f_);
      return next;
    });
  };
  Value main = l_.roundDown(width, step), whole = l_.roundDown(width, lanes);
  auto known = Loops::constant(main);
  int64_t block = kFlushSteps * step;
  if (sums.empty() || (known && *known <= block)) {
    sums = steps(l_.index(0), main, unroll, sums);
  } else {
    sums = l_.forEach(l_.index(0), main, block, sums, [&](Value j, ValueRange running) {
      Values zeros(running.size(), l_.zero(running[0].getType()));
      Values inner = steps(j, l_.min(l_.add(j, l_.index(block)), main), unroll, zeros);
      for (auto [i, v] : llvm::enumerate(inner)) v = l_.addf(running[i], v);
      return inner;
    });
  }
  // What is left of a run of known length is one step, and so is the tail with it: stores of a line follow each other.
  const int64_t rest = known ? (*Loops::constant(whole) - *known) / lanes : 0;
  if (known && *Loops::constant(whole) < *Loops::constant(width) && !schedule_.getScalarTail()) {
    Values next(sums);
    for (int64_t u = 0; u <= rest; ++u) {
      const bool tail = u == rest;
      element(s, replicas, l_.add(main, l_.index(u * lanes)), lanes, tail ? f_.laneMask(l_.sub(width, whole), lanes) : Value(),
              MutableArrayRef<Value>(next).drop_front(sums.empty() ? 0 : u), unroll);
    }
    s.flush(f_);
    return next;
  }
  if (unroll > 1) sums = steps(main, whole, std::max<int64_t>(rest, 1), sums);
  if (known && schedule_.getScalarTail()) {
    // 7 = 4 + 2 + 1
    Values next(sums);
    Value at = whole;
    for (int64_t part = lanes / 2; part; part /= 2) {
      if (!(*Loops::constant(width) & part)) continue;
      element(s, replicas, at, part == 1 ? 0 : part, {}, next, unroll);
      at = l_.add(at, l_.index(part));
    }
    s.flush(f_);
    return next;
  }
  if (schedule_.getScalarTail())
    return l_.forEach(whole, width, 1, sums, [&](Value j, ValueRange running) {
      Values next(running);
      element(s, replicas, j, 0, {}, next, unroll);
      s.flush(f_);
      return next;
    });
  return l_.when(l_.less(whole, width), sums, [&] {
    Values next(sums);
    element(s, replicas, whole, lanes, f_.laneMask(l_.sub(width, whole), lanes), next, unroll);
    s.flush(f_);
    return next;
  });
}

static Values zeros(Loops& l, Type statistics, int64_t lanes, size_t count) {
  return count ? Values(count, l.zero(lanes ? Type(VectorType::get({lanes}, statistics)) : statistics)) : Values();
}

/// Adds what each replica summed along its run to the partial of its own feature.
void PhaseLowering::addRowPartials(Sweep& s, MutableArrayRef<Replica> replicas, ArrayRef<Value> sums) {
  unsigned unroll = unroll_;
  for (auto [r, replica] : llvm::enumerate(replicas)) {
    unsigned slot = (r * s.slots + s.op.getSums().size()) * unroll;
    for (auto [k, t] : llvm::enumerate(s.partials)) {
      if (!s.runPartial[k]) continue;
      Value address = f_.address(t, replica.at);
      Value sum = horizontal(l_.tree(sums.slice(slot, unroll)));
      f_.store(t, address, l_.addf(f_.load(t, address, 0, {}), sum), {});
      slot += unroll;
    }
  }
}

/// Stores of one line follow each other: where they end within lines of the cache, some processors put the halves together
/// only then. What lines share, the sums per feature, is added up for all of them before, and read once more.
void PhaseLowering::writeInTurn(Sweep& s, Replicas& replicas, Value width) {
  if (!s.partials.empty()) {
    s.stores = false;
    along(s, replicas, width, {});
  }
  s.stores = true, s.collects = false;
  const Value next = next_;
  const int64_t unroll = unroll_;
  if (!inLarge_) unroll_ = std::max(unroll, std::min<int64_t>(unroll * int64_t(replicas.size()), kTurnUnroll));
  for (auto [i, r] : llvm::enumerate(replicas)) {
    if (next) next_ = l_.add(next, l_.index(int64_t(i)));
    along(s, r, width, {});
  }
  next_ = next, unroll_ = unroll;
}

void PhaseLowering::lineSweep(SweepOp op, Replicas& replicas, Replica* all) {
  Sweep s(partsOf(op));
  for (Replica& r : replicas) hoist(s, r);
  unsigned unroll = unroll_;
  Value width = runWidth();
  if (op.getCondition()) width = l_.select(mapped(op.getCondition(), replicas[0].values), width, l_.index(0));
  if (schedule_.getInTurn() && replicas.size() > 1 && !s.writes.empty() && s.slots == 0) return writeInTurn(s, replicas, width);
  Values sums = along(s, replicas, width,
                      zeros(l_, f_.statistics(), schedule_.getVector(), replicas.size() * s.slots * unroll));
  for (auto [k, result] : llvm::enumerate(op.getSums())) {
    Values lanes;
    for (size_t r = 0; r < replicas.size(); ++r)
      lanes.push_back(l_.tree(ArrayRef<Value>(sums).slice((r * s.slots + k) * unroll, unroll)));
    if (all) all->values.map(result, horizontals(lanes));
    else for (auto [r, replica] : llvm::enumerate(replicas)) replica.values.map(result, horizontal(lanes[r]));
  }
  addRowPartials(s, replicas, sums);
}

/// The same of channels: all runs of one, then those of the next. Not in large calls, which memory serves as well side by side.
void PhaseLowering::writeChannelsInTurn(SweepOp op, SlabOp slab, Replicas& replicas) {
  const int64_t unroll = unroll_;
  unroll_ = std::max(unroll, std::min<int64_t>(unroll * int64_t(replicas.size()), kTurnUnroll));
  for (Replica& r : replicas) {
    Replicas one{r};
    blockSweep(op, slab, one);
  }
  unroll_ = unroll;
}

/// A block within a segment has its rows side by side, a block over segments its neighbours: all of them go through a
/// segment before the next, and each has its own sums.
void PhaseLowering::blockSweep(SweepOp op, SlabOp slab, Replicas& replicas, Replica* all) {
  Sweep s(partsOf(op));
  const bool overSegments = !slab.isPer("segment");
  if (overSegments && schedule_.getInTurn() && !inLarge_ && replicas.size() > 1 && !s.writes.empty() && s.slots == 0)
    return writeChannelsInTurn(op, slab, replicas);
  int64_t together = overSegments ? 1 : rowsTogether(), lanes = schedule_.getVector();
  int64_t members = overSegments ? replicas.size() : together;
  unsigned unroll = unroll_, perRow = s.slots * unroll;
  Value width = runWidth();
  Value count = overSegments ? f_.segments() : f_.featuresLast() ? f_.rows() : f_.groupWidth("group");
  if (op.getCondition()) count = l_.select(mapped(op.getCondition(), replicas[0].values), count, l_.index(0));

  auto rowsFrom = [&](Value row, int64_t n, ValueRange running) {
    Replicas rows(overSegments ? replicas : Replicas(n, replicas[0]));
    for (auto [i, r] : llvm::enumerate(rows)) {
      Value at = overSegments ? row : l_.add(row, l_.index(i));
      if (overSegments) r.at.segment = at;
      else if (f_.featuresLast()) r.at.row = at;
      else r.at.feature = l_.add(l_.mul(r.at.group, f_.groupWidth("group")), at);
      hoist(s, r);
    }
    auto piece = [&](Value size, ValueRange before) {
      Values own = along(s, rows, size, zeros(l_, f_.statistics(), lanes, rows.size() * perRow));
      addRowPartials(s, rows, own);
      for (auto [i, v] : llvm::enumerate(own)) v = l_.addf(before[i], v);
      return own;
    };
    if (!overSegments || !perRow) return piece(width, running);
    const Value most = l_.index(kLongRunSteps * lanes * unroll), begin = runBegin_;
    Values sums = l_.forEach(l_.index(0), width, kLongRunSteps * lanes * unroll, running, [&](Value from, ValueRange before) {
      runBegin_ = l_.add(begin, from);
      return piece(l_.min(most, l_.sub(width, from)), before);
    });
    runBegin_ = begin;
    return sums;
  };
  auto rowRange = [&](Value begin, Value end, ValueRange from) {
    Value most = l_.add(begin, l_.roundDown(l_.sub(end, begin), together));
    Values sums = l_.forEach(begin, most, together, from,
                             [&](Value row, ValueRange running) { return rowsFrom(row, together, running); });
    if (together == 1) return sums;
    return l_.forEach(most, end, 1, sums, [&](Value row, ValueRange running) {
      Values next(running);
      llvm::copy(rowsFrom(row, 1, running), next.begin());
      return next;
    });
  };
  Values sums = l_.forEach(l_.index(0), count, kFlushBlockRows, zeros(l_, f_.statistics(), lanes, members * perRow),
                           [&](Value begin, ValueRange running) {
                             Value end = l_.min(l_.add(begin, l_.index(kFlushBlockRows)), count);
                             Values inner = rowRange(begin, end, zeros(l_, f_.statistics(), lanes, running.size()));
                             for (auto [i, v] : llvm::enumerate(inner)) v = l_.addf(running[i], v);
                             return inner;
                           });
  for (auto [k, result] : llvm::enumerate(op.getSums())) {
    Values parts;
    for (int64_t r = 0; r < members; ++r)
      for (unsigned u = 0; u < unroll; ++u) parts.push_back(sums[(r * s.slots + k) * unroll + u]);
    if (!overSegments) {
      replicas[0].values.map(result, horizontal(l_.tree(parts)));
      continue;
    }
    Values each;
    for (int64_t r = 0; r < members; ++r) each.push_back(l_.tree(ArrayRef<Value>(parts).slice(r * unroll, unroll)));
    if (all) all->values.map(result, horizontals(each));
    else for (auto [r, replica] : llvm::enumerate(replicas)) replica.values.map(result, horizontal(each[r]));
  }
}

void PhaseLowering::columnSweep(SweepOp op, Replicas& replicas) {
  Sweep s(partsOf(op));
  for (Replica& r : replicas) maskOf(r, replicas), hoist(s, r);
  Value rows = f_.rows();
  if (op.getCondition()) rows = l_.select(mapped(op.getCondition(), replicas[0].values), rows, l_.index(0));
  Values sums = zeros(l_, f_.statistics(), lanes_, replicas.size() * s.slots);
  // Strip by strip: a vector of every row is loaded and stored before the next, so that few registers are in use.
  auto rowsAt = [&](Value row, int64_t count, ValueRange running) {
    Values next(running);
    std::vector<SmallVector<Value>> common(count, SmallVector<Value>(s.reads.size()));
    for (auto [r, replica] : llvm::enumerate(replicas)) {
      // The terms of the rows are added first: fewer roundings at the size of the sum.
      std::vector<Values> terms(count, Values(s.slots));
      maskOf(replica, replicas);
      for (int64_t i = 0; i < count; ++i)
        element(s, replica, i ? l_.add(row, l_.index(i)) : row, lanes_, laneMask_, terms[i], 1, common[i]);
      s.flush(f_);
      for (unsigned slot = 0; slot < s.slots; ++slot) {
        Values column;
        for (Values& t : terms) column.push_back(t[slot]);
        Value& sum = next[r * s.slots + slot];
        sum = l_.addf(sum, l_.tree(column));
      }
    }
    return next;
  };
  auto plus = [&](ValueRange running, Values inner) {
    for (auto [i, v] : llvm::enumerate(inner)) v = l_.addf(running[i], v);
    return inner;
  };
  const int64_t together = rowsTogether(), few = together == 1 ? kFlushColumnRows / 2 : kFlushColumnRows;
  auto fewRows = [&](Value begin, Value end) {
    Values inner = zeros(l_, f_.statistics(), lanes_, sums.size());
    Value most = l_.add(begin, l_.roundDown(l_.sub(end, begin), together));
    inner = l_.forEach(begin, most, together, inner, [&](Value row, ValueRange from) { return rowsAt(row, together, from); });
    if (together == 1) return inner;
    return l_.forEach(most, end, 1, inner, [&](Value row, ValueRange from) { return rowsAt(row, 1, from); });
  };
  auto rowsBy = [&](int64_t step, Value first, Value last, ValueRange from, auto inner) {
    return l_.forEach(first, last, step, from, [&](Value begin, ValueRange running) {
      return plus(running, inner(begin, l_.min(l_.add(begin, l_.index(step)), last)));
    });
  };
  auto segmentRows = [&](ValueRange from) {
    // A segment has few rows, and three kinds of tile in one function leave no room for a third level.
    if (slab_.isPer("segment")) return rowsBy(few, l_.index(0), rows, from, fewRows);
    return rowsBy(few * kFlushColumns, l_.index(0), rows, from, [&](Value begin, Value end) {
      return rowsBy(few, begin, end, zeros(l_, f_.statistics(), lanes_, sums.size()), fewRows);
    });
  };
  if (slab_.isPer("segment")) {
    sums = segmentRows(sums);
  } else {
    sums = l_.forEach(l_.index(0), f_.segments(), 1, sums, [&](Value segment, ValueRange running) {
      for (Replica& r : replicas) r.at.segment = segment;
      return segmentRows(running);
    });
  }
  for (auto [r, replica] : llvm::enumerate(replicas))
    for (auto [k, result] : llvm::enumerate(op.getSums())) replica.values.map(result, sums[r * s.slots + k]);
}

//===-- The buffer of a stream ----------------------------------------------------===//

/// Sums of one partial lie behind those of another.
static int64_t bufferPitch(Type statistics) {
  return kStreamTile + kApartBytes * 8 / statistics.getIntOrFloatBitWidth();
}

Value PhaseLowering::inBuffer(size_t partial, Value feature) {
  return l_.add(bufferBegin_, l_.add(feature, l_.index(int64_t(partial) * bufferPitch(f_.statistics()))));
}

Value PhaseLowering::loadBuffer(Value at, int64_t lanes) {
  if (!lanes) return memref::LoadOp::create(l_.b, l_.loc, buffer_, at);
  return vector::LoadOp::create(l_.b, l_.loc, VectorType::get({lanes}, f_.statistics()), buffer_, ValueRange{at});
}
void PhaseLowering::storeBuffer(Value at, Value v) {
  if (isa<VectorType>(v.getType())) vector::StoreOp::create(l_.b, l_.loc, v, buffer_, ValueRange{at});
  else memref::StoreOp::create(l_.b, l_.loc, v, buffer_, at);
}

/// On the stack of the phase function; a vector longer than a tile, so that tails need no mask.
void PhaseLowering::allocateBuffer() {
  size_t partials = 0;
  TensorOp input;
  for (auto slab : f_.phase().getOps<SlabOp>())
    if (kindOf(slab) == Kind::Stream && !slab.getHead())
      for (auto sweep : slab.getOps<SweepOp>()) {
        partials = std::max(partials, sweep.getPartials().size());
        for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>())
          if (TensorOp t = f_.tensor(name.getValue()); !input && t.isXSized()) input = t;
      }
  if (!partials) return;
  int64_t size = f_.statistics().getIntOrFloatBitWidth() / 8;
  int64_t elements = int64_t(partials) * bufferPitch(f_.statistics()) + schedule_.getVector();
  auto type = MemRefType::get({elements + kPageBytes / size}, f_.statistics());
  buffer_ = memref::AllocaOp::create(l_.b, l_.loc, type, l_.b.getI64IntegerAttr(kLine));
  // From here to x within a page, and `kApartBytes` further, in whole lines.
  auto addressOf = [&](Value memory) -> Value { return memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, memory); };
  Value distance = l_.add(l_.sub(addressOf(f_.pointer(input)), addressOf(buffer_)), l_.index(kApartBytes));
  Value lines = arith::AndIOp::create(l_.b, l_.loc, distance, l_.index(kPageBytes - kLine));
  bufferBegin_ = l_.div(lines, l_.index(size));
}

void PhaseLowering::clearBuffer(Sweep& s, Value width) {
  int64_t lanes = schedule_.getVector();
  Value zeros = l_.zero(VectorType::get({lanes}, f_.statistics()));
  for (size_t k = 0; k < s.partials.size(); ++k)
    l_.forEach(l_.index(0), width, lanes, [&](Value j) { storeBuffer(inBuffer(k, j), zeros); });
}

void PhaseLowering::flushBuffer(Sweep& s, Value width) {
  int64_t lanes = schedule_.getVector();
  Value whole = l_.roundDown(width, lanes);
  for (auto [k, t] : llvm::enumerate(s.partials)) {
    Value base = f_.address(t, {.feature = runBegin_});
    auto add = [&](Value j, int64_t width) {
      Value address = l_.add(base, j);
      f_.store(t, address, l_.addf(f_.load(t, address, width, {}), loadBuffer(inBuffer(k, j), width)), {});
    };
    l_.forEach(l_.index(0), whole, lanes, [&](Value j) { add(j, lanes); });
    l_.forEach(whole, width, 1, [&](Value j) { add(j, 0); });
  }
}

void PhaseLowering::streamSweep(SweepOp op, Value begin, Value end) {
  Sweep s(partsOf(op));
  if (op.getCondition()) end = l_.select(mapped(op.getCondition(), shared_), end, begin);
  int64_t together = slab_.getHead() ? *slab_.getHead() : rowsTogether();
  const int64_t columns = inLarge_ ? kStreamTile : kCachedTile;
  l_.forEach(l_.index(0), f_.features(), columns, [&](Value tile) {
    runBegin_ = tile;
    auto features = Loops::constant(f_.features());
    Value width = features && *features % columns == 0 ? l_.index(columns)
                                                       : l_.min(l_.index(columns), l_.sub(f_.features(), tile));
    auto rowsFrom = [&](Value unit, int64_t n) {
      markNext(unit, n);
      Replicas rows(n);
      for (auto [i, r] : llvm::enumerate(rows)) {
        r.at = unitCoordinates(l_.add(unit, l_.index(i)));
        r.values = shared_;
        hoist(s, r);
      }
      along(s, rows, width, {});
    };
    auto rowsBetween = [&](Value first, Value last) {
      Value most = l_.add(first, l_.roundDown(l_.sub(last, first), together));
      l_.forEach(first, most, together, [&](Value unit) { rowsFrom(unit, together); });
      if (together > 1) l_.forEach(most, last, 1, [&](Value unit) { rowsFrom(unit, 1); });
    };
    if (s.partials.empty() || slab_.getHead()) return rowsBetween(begin, end);
    // Two levels: a few rows are summed in a buffer of the tile, which is then added to the partials.
    s.buffered = true;
    const int64_t collected = together == 1 ? kFlushStreamSteps / 2 : kFlushStreamSteps * together;
    l_.forEach(begin, end, collected, [&](Value first) {
      Value last = l_.min(l_.add(first, l_.index(collected)), end);
      clearBuffer(s, width);
      rowsBetween(first, last);
      flushBuffer(s, width);
    });
  });
}

void PhaseLowering::runsSweep(SweepOp op, Value begin, Value end) {
  Sweep s(partsOf(op));
  if (op.getCondition()) end = l_.select(mapped(op.getCondition(), shared_), end, begin);
  const int64_t together = rowsTogether(), lanes = schedule_.getVector();
  const unsigned unroll = unroll_;
  Value rows = f_.rows(), zero = l_.index(0), tile = zero;
  // A run adds up within itself first; sums of features that stand side by side are then one vector.
  auto runs = [&](Value segment, Value feature, int64_t n, Value width) {
    Replicas replicas(n);
    for (auto [i, r] : llvm::enumerate(replicas)) {
      r.at = {.segment = segment, .feature = l_.add(feature, l_.index(i)), .chunk = f_.task()};
      r.values = shared_;
      hoist(s, r);
    }
    Values sums = along(s, replicas, width, zeros(l_, f_.statistics(), lanes, n * s.slots * unroll));
    for (size_t k = 0; k < s.slots; ++k) {
      Values each;
      for (int64_t r = 0; r < n; ++r) each.push_back(l_.tree(ArrayRef<Value>(sums).slice((r * s.slots + k) * unroll, unroll)));
      const bool pack = n > 1 && lanes > 1;
      for (int64_t r = 0; r < (pack ? 1 : n); ++r) {
        Value at = inBuffer(k, l_.add(l_.sub(feature, tile), l_.index(r)));
        Value sum = pack ? horizontals(each) : horizontal(each[r]);
        storeBuffer(at, l_.addf(loadBuffer(at, pack ? n : 0), sum));
      }
    }
  };
  // Rows from `first` to `last` of the batch: segment after segment, and in each the features from `tile` on.
  auto segmentsBetween = [&](Value first, Value last, Value features) {
    auto [from, row] = segmentAndRow(first);
    Value to = segmentAndRow(l_.add(last, l_.sub(rows, l_.index(1)))).first;
    l_.forEach(from, to, 1, [&](Value segment) {
      Value origin = l_.mul(segment, rows);
      Value begin = arith::MaxSIOp::create(l_.b, l_.loc, l_.sub(first, origin), zero);
      Value width = l_.sub(l_.min(l_.sub(last, origin), rows), begin);
      runBegin_ = begin;
      Value whole = l_.add(tile, l_.roundDown(l_.sub(features, tile), together));
      l_.forEach(tile, whole, together, [&](Value f) { runs(segment, f, together, width); });
      if (together > 1) l_.forEach(whole, features, 1, [&](Value f) { runs(segment, f, 1, width); });
    });
  };
  l_.when(l_.less(begin, end), {}, [&] {
    if (!s.slots) return segmentsBetween(begin, end, f_.features()), Values();
    l_.forEach(zero, f_.features(), kStreamTile, [&](Value from) {
      tile = from;
      Value features = l_.min(l_.add(tile, l_.index(kStreamTile)), f_.features());
      // Two levels: some segments are summed in a buffer, which is then added to the partials.
      Value some = l_.mul(rows, l_.index(kFlushBlockRows));
      auto collected = scf::ForOp::create(l_.b, l_.loc, begin, end, some);
      OpBuilder::InsertionGuard guard(l_.b);
      l_.b.setInsertionPointToStart(collected.getBody());
      Value first = collected.getInductionVar();
      runBegin_ = tile;
      Value width = l_.sub(features, tile);
      clearBuffer(s, width);
      segmentsBetween(first, l_.min(l_.add(first, some), end), features);
      runBegin_ = tile;
      flushBuffer(s, width);
    });
    return Values();
  });
}

}  // namespace normc::codegen
