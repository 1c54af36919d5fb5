// Sweeps: the loops over the elements of runs, blocks and columns. Streams.cpp and Channels.cpp have the
// others.
#include "codegen/targets/cpu/lower/Sweep.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace normc::codegen {

/// The rows of a column after which sums go to a second level; half as many if the schedule does not add the
/// terms of rows first. A term that is less than half of the last digit of a sum is lost, so the level that
/// may hold an outlier is shorter than others.
static constexpr int64_t kFlushColumnRows = 16;

void PhaseLowering::Sweep::sort() {
  llvm::sort(pending, [](const Pending& a, const Pending& b) {
    return std::pair(a.replica, a.order) < std::pair(b.replica, b.order);
  });
}

void PhaseLowering::Sweep::flush(AccessLowering& f, bool nonTemporal) {
  // Codes of a short vector do not fill a vector register: they would be stored with instructions for
  // scalars.
  constexpr int64_t kLeastBytes = 16;
  auto isWide = [](Pending& p) {
    auto vector = dyn_cast<VectorType>(p.value.getType());
    return vector && vector.getNumElements() * p.tensor.getType().getIntOrFloatBitWidth() >= 8 * kLeastBytes;
  };
  sort();
  for (Pending& p : pending)
    f.store(p.tensor, p.address, p.value, p.mask, {}, nonTemporal && p.tensor.isXSized() && isWide(p));
  pending.clear();
}

/// Returns a scalar term, or one of fewer lanes, as a vector whose other lanes are the identity, to be
/// combined with a vector of sums.
Value PhaseLowering::inFirstLanes(Value term, Combiner combiner) {
  Value none = l_.identity(
      combiner, VectorType::get({int64_t(schedule_.getVector())}, getElementTypeOrSelf(term.getType())));
  if (isa<VectorType>(term.getType()))
    return vector::InsertStridedSliceOp::create(l_.b, l_.loc, term, none, ArrayRef<int64_t>{0},
                                                ArrayRef<int64_t>{1});
  return vector::InsertOp::create(l_.b, l_.loc, term, none, ArrayRef<int64_t>{0});
}

Values PhaseLowering::elementCode(SweepOp sweep, Replica& replica, Value offset, int64_t lanes) {
  Block& body = sweep.getBody().front();
  const bool loads = keeps_ && keeps_->isLast(sweep);
  if (loads) keeps_->load(l_, replica.index, offset, lanes, replica.values);
  auto isNeeded = [&](Operation& op) { return !loads || keeps_->executes(op); };
  const Values yielded = regionCode(body, replica.values, isNeeded);
  if (keeps_ && keeps_->isFirst(sweep))
    keeps_->store(l_, replica.index, offset, lanes, replica.values,
                  [&](Operation& op) { clone(op, replica.values); });
  return yielded;
}

/// Emits one step: `lanes` elements from `offset` on, for every replica. `common` holds the values that
/// replicas share, once they are loaded.
void PhaseLowering::element(Sweep& s, MutableArrayRef<Replica> replicas, Value offset, int64_t lanes,
                            Value mask, MutableArrayRef<Value> sums, unsigned stride,
                            MutableArrayRef<Value> common) {
  Block& body = s.op.getBody().front();
  SmallVector<Value> ownCommon(s.reads.size());
  if (common.empty()) common = ownCommon;
  bool column = kind_ == Kind::Column && !piece_;
  SmallVector<SmallVector<Value>> contributions(s.partials.size()), ofRows(s.sumsAt.size());
  for (auto [v, memory] : s.ofRow) {
    Value here = memory.load(l_, offset, lanes);
    for (Replica& replica : replicas) replica.values.map(v, here);
  }
  auto place = [&](const Replica& r) {
    Coordinates at = r.at;
    if (column)
      at.row = offset;
    else
      (f_.featuresLast() ? at.feature : at.row) = l_.add(runBegin_, offset);
    return at;
  };
  for (auto [r, replica] : llvm::enumerate(replicas)) {
    Coordinates at = place(replica);
    for (auto [i, t] : llvm::enumerate(s.reads)) {
      if (s.hoisted[i] || (keeps_ && keeps_->isLast(s.op) && !keeps_->reads(i))) continue;
      Value v = s.shared[i] ? common[i] : Value();
      if (!v) {
        int64_t width = column && !t.hasAxis(Axis::Feature) ? 0 : lanes;
        v = loadRead(s, i, at, width, width ? mask : Value());
        common[i] = v;
      }
      replica.values.map(body.getArgument(i), v);
    }
    if (Value turned = s.op.isTurned())
      replica.values.map(turned, PairLowering(l_, f_).isTurned(at.feature, lanes));
    const Values yielded = elementCode(s.op, replica, offset, lanes);
    auto value = [&](unsigned i) { return l_.broadcast(yielded[i], lanes); };
    unsigned next = 0;
    for (TensorOp t : s.writes) {
      if (s.stores && s.stage)
        s.stage->store(r, offset, f_.narrowed(t, value(next)), mask);
      else if (s.stores)
        s.pending.push_back({t, f_.address(t, at), value(next), mask, r, s.pending.size()});
      ++next;
    }
    unsigned slot = r * s.slots * stride;
    const Combiner* combiner = s.combiners.begin();
    auto add = [&](Value v) {
      if (mask && !column) v = l_.select(mask, v, l_.identity(*combiner, v.getType()));
      if (lanes != schedule_.getVector() && !column) v = inFirstLanes(v, *combiner);
      sums[slot] = sums[slot] ? l_.combine(*combiner, sums[slot], v) : v;
      slot += stride;
      ++combiner;
    };
    for (size_t k = 0; k < s.sums; ++k) add(value(next++));
    for (auto& terms : ofRows) terms.push_back(value(next++));
    for (size_t k = 0; k < s.partials.size() && s.collects; ++k) {
      if (s.runPartial[k])
        add(value(next++));
      else
        contributions[k].push_back(value(next++));
    }
  }
  for (auto [terms, memory, combiner] : llvm::zip(ofRows, s.sumsAt, s.rowCombiners))
    memory.store(l_, offset, l_.combine(combiner, memory.load(l_, offset, lanes), l_.tree(terms, combiner)));
  for (auto [k, t] : llvm::enumerate(s.partials)) {
    if (s.runPartial[k] || !s.collects) continue;
    if (s.buffered) {
      // Behind a lead lie features of the next step.
      buffer_->add(k, offset, sumOfRows(contributions[k]), s.hasLead ? mask : Value());
      continue;
    }
    Value address = f_.address(t, place(replicas[0]));
    Value sum = l_.addf(f_.load(t, address, lanes, mask), sumOfRows(contributions[k]));
    s.pending.push_back({t, address, sum, mask, replicas.size(), s.pending.size()});
  }
}

static bool computesExponential(SweepOp sweep) {
  return sweep.walk([](math::ExpOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Prefetches the inputs of the next step at the offset that this step works on. Demand loads then find their
/// data in cache, and a prefetch that is late delays no other access. What a second sweep alone reads beside
/// an exponential is left to the processor's own prefetch, which has the time to run ahead there: a core has
/// few misses open at once.
void PhaseLowering::prefetchNext(ArrayRef<Replica> replicas, Value offset, int64_t elements) {
  llvm::SetVector<Operation*> inputs;
  bool first = true;
  for (auto sweep : slab_.sweeps()) {
    if (!std::exchange(first, false) && kind_ == Kind::Run && computesExponential(sweep)) continue;
    for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>())
      if (TensorOp t = f_.tensor(name.getValue()); t.isXSized()) inputs.insert(t);
  }
  for (auto [r, replica] : llvm::enumerate(replicas)) {
    Coordinates at;
    if (piece_) {
      at = replica.at;
      at.feature = l_.add(at.feature, piece_->nextFeature);
      at.row = l_.add(next_, offset);
    } else {
      at = unitCoordinates(l_.add(next_, l_.index(int64_t(r))));
      (f_.featuresLast() ? at.feature : at.row) = l_.add(runBegin_, offset);
    }
    for (Operation* op : inputs) {
      auto t = cast<TensorOp>(op);
      Value first = f_.address(t, at);
      const int64_t line = kCacheLine * 8 / t.getType().getIntOrFloatBitWidth();
      for (int64_t i = 0; i < elements; i += line)
        f_.prefetch(t, l_.add(first, l_.index(i)), schedule_.getNta());
    }
  }
}

std::optional<int64_t> PhaseLowering::mostOfRun() {
  if (piece_) return PieceMemory::mostRows(f_.statistics());
  return f_.featuresLast() ? Loops::constant(f_.features()) : std::nullopt;
}

/// Goes through the pairs of runs: the vectors of a step are the first of some pairs, then their second, so
/// that each is loaded and computed once.
Values PhaseLowering::alongPairs(Sweep& s, MutableArrayRef<Replica> replicas, Values sums, bool flushes) {
  const int64_t lanes = schedule_.getVector(), unroll = steps_.unroll, firsts = unroll / 2;
  const Value pairs = PairLowering(l_, f_).pairs();
  auto steps = [&](Value begin, Value end, ValueRange from) {
    return l_.forEach(begin, end, firsts * lanes, from, [&](Value j, ValueRange running) {
      Values next(running);
      if (next_ && s.writesNow())
        for (Value at : {j, l_.add(j, pairs)}) prefetchNext(replicas, at, firsts * lanes);
      for (int64_t u = 0; u < unroll; ++u) {
        const Value pair = l_.add(j, l_.index(u % firsts * lanes));
        llvm::SaveAndRestore side(side_, std::optional(Side{.first = u < firsts, .pair = pair}));
        element(s, replicas, u < firsts ? pair : l_.add(pair, pairs), lanes, {},
                MutableArrayRef<Value>(next).drop_front(sums.empty() ? 0 : u), unroll);
      }
      flush(s, firsts);
      return next;
    });
  };
  if (sums.empty() || !flushes) return steps(l_.index(0), pairs, sums);
  return l_.inLevels(l_.index(0), pairs, firsts * lanes, sums, steps, Loops::constant(pairs),
                     s.combinersOf(replicas.size(), unroll));
}

Values PhaseLowering::steps(Sweep& s, const Run& run, Value begin, Value end, int64_t vectors,
                            ValueRange sums) {
  const int64_t lanes = schedule_.getVector();
  return l_.forEach(begin, end, vectors * lanes, sums, [&](Value j, ValueRange running) {
    Values next(running);
    if (next_ && (kind_ == Kind::Stream || s.writesNow())) prefetchNext(run.replicas, j, vectors * lanes);
    for (int64_t u = 0; u < vectors; ++u)
      element(s, run.replicas, l_.add(j, l_.index(u * lanes)), lanes, {},
              MutableArrayRef<Value>(next).drop_front(sums.empty() ? 0 : u), steps_.unroll);
    flush(s, vectors);
    return next;
  });
}

PhaseLowering::Run PhaseLowering::cut(MutableArrayRef<Replica> replicas, Value width, Value lead) {
  const int64_t lanes = schedule_.getVector(), step = lanes * steps_.unroll;
  Run run = {.replicas = replicas, .width = width, .lead = lead, .first = lead ? lead : l_.index(0)};
  const Value behind = lead ? l_.sub(width, lead) : width;
  auto until = [&](int64_t multiple) {
    Value rounded = l_.roundDown(behind, multiple);
    return lead ? l_.add(lead, rounded) : rounded;
  };
  run.main = until(step);
  run.whole = until(lanes);
  const auto main = Loops::constant(run.main);
  const bool scalar = schedule_.getScalarTail();
  if (main) run.rest = (*Loops::constant(run.whole) - *main) / lanes;
  if (main && !scalar && *Loops::constant(run.whole) < *Loops::constant(width))
    run.tail = Tail::Joined;
  else if (main && scalar)
    run.tail = Tail::Halves;
  else if (scalar && !lead)
    run.tail = Tail::Scalar;
  return run;
}

Values PhaseLowering::along(Sweep& s, MutableArrayRef<Replica> replicas, Value width, Values sums,
                            bool flushes) {
  const int64_t lanes = schedule_.getVector(), unroll = steps_.unroll, step = lanes * unroll;
  if (s.turns() && unroll > 1 && PairLowering(l_, f_).hasSides(width, step / 2))
    return alongPairs(s, replicas, sums, flushes);
  const Value lead = sums.empty() ? leadOf(s, replicas, width) : Value();
  llvm::SaveAndRestore begins(s.hasLead, bool(lead));
  if (lead)
    l_.forEach(l_.index(0), lead, lanes, [&](Value j) {
      element(s, replicas, j, lanes, f_.laneMask(l_.sub(lead, j), lanes), {}, unroll);
      s.flush(f_);
    });
  const Run run = cut(replicas, width, lead);
  auto wholeSteps = [&](Value begin, Value end, ValueRange from) {
    return steps(s, run, begin, end, unroll, from);
  };
  if (sums.empty() || !flushes)
    sums = wholeSteps(run.first, run.main, sums);
  else
    sums = l_.inLevels(l_.index(0), run.main, step, sums, wholeSteps, mostOfRun(),
                       s.combinersOf(replicas.size(), unroll));
  if (run.tail == Tail::Joined) return joinedTail(s, run, sums);
  if (unroll > 1) sums = steps(s, run, run.main, run.whole, std::max<int64_t>(run.rest, 1), sums);
  if (run.tail == Tail::Halves) return tailInHalves(s, run, sums);
  return run.tail == Tail::Scalar ? scalarTail(s, run, sums) : maskedTail(s, run, sums);
}

Values PhaseLowering::joinedTail(Sweep& s, const Run& run, Values sums) {
  const int64_t lanes = schedule_.getVector();
  for (int64_t u = 0; u <= run.rest; ++u) {
    const bool tail = u == run.rest;
    element(s, run.replicas, l_.add(run.main, l_.index(u * lanes)), lanes,
            tail ? f_.laneMask(l_.sub(run.width, run.whole), lanes) : Value(),
            MutableArrayRef<Value>(sums).drop_front(sums.empty() ? 0 : u), steps_.unroll);
  }
  s.flush(f_);
  return sums;
}

Values PhaseLowering::maskedTail(Sweep& s, const Run& run, Values sums) {
  const int64_t lanes = schedule_.getVector();
  return l_.when(l_.less(run.whole, run.width), sums, [&] {
    Values next(sums);
    element(s, run.replicas, run.whole, lanes, f_.laneMask(l_.sub(run.width, run.whole), lanes), next,
            steps_.unroll);
    s.flush(f_);
    return next;
  });
}

Values PhaseLowering::tailInHalves(Sweep& s, const Run& run, Values sums) {
  Value at = run.whole;
  for (int64_t part = schedule_.getVector() / 2; part; part /= 2) {
    if (!(*Loops::constant(run.width) & part)) continue;
    element(s, run.replicas, at, part == 1 ? 0 : part, {}, sums, steps_.unroll);
    at = l_.add(at, l_.index(part));
  }
  s.flush(f_);
  return sums;
}

Values PhaseLowering::scalarTail(Sweep& s, const Run& run, Values sums) {
  const int64_t lanes = schedule_.getVector();
  auto elements = [&](Value begin, Value end, ValueRange from) {
    return l_.forEach(begin, end, 1, from, [&](Value j, ValueRange running) {
      Values next(running);
      element(s, run.replicas, j, 0, {}, next, steps_.unroll);
      s.flush(f_);
      return next;
    });
  };
  if (sums.empty() || lanes <= kLongestChain) return elements(run.whole, run.width, sums);
  return l_.inLevels(run.whole, run.width, 1, sums, elements, lanes - 1,
                     s.combinersOf(run.replicas.size(), steps_.unroll));
}

Values PhaseLowering::identities(Combiners combiners, int64_t lanes) {
  const Type type = lanes ? Type(VectorType::get({lanes}, f_.statistics())) : f_.statistics();
  return llvm::map_to_vector<16>(combiners, [&](Combiner combiner) { return l_.identity(combiner, type); });
}

/// Maps the results of a sweep, of which each replica has running values in as many vectors for each slot as
/// a step.
void PhaseLowering::acrossLanes(Sweep& s, Replicas& replicas, ArrayRef<Value> sums, Replica* all) {
  const unsigned unroll = steps_.unroll;
  for (auto [k, result] : llvm::enumerate(s.op.getSums())) {
    const Combiner combiner = s.combiners[k];
    Values each;
    for (size_t r = 0; r < replicas.size(); ++r)
      each.push_back(l_.tree(sums.slice((r * s.slots + k) * unroll, unroll), combiner));
    if (all)
      all->values.map(result, horizontals(each, combiner));
    else
      for (auto [r, replica] : llvm::enumerate(replicas))
        replica.values.map(result, horizontal(each[r], combiner));
  }
}

/// Adds the sum along the run of each replica to the partial of its feature.
void PhaseLowering::addRowPartials(Sweep& s, MutableArrayRef<Replica> replicas, ArrayRef<Value> sums) {
  const unsigned unroll = steps_.unroll;
  for (auto [r, replica] : llvm::enumerate(replicas)) {
    unsigned slot = (r * s.slots + s.sums) * unroll;
    for (auto [k, t] : llvm::enumerate(s.partials)) {
      if (!s.runPartial[k]) continue;
      Value address = f_.address(t, replica.at);
      Value sum = horizontal(l_.tree(sums.slice(slot, unroll)));
      f_.store(t, address, l_.addf(f_.load(t, address, 0, {}), sum), {});
      slot += unroll;
    }
  }
}

/// Stores one run after the other. If runs end inside cache lines, some processors join the two halves of a
/// cache line only if no other stores are between. Sums per feature, which runs share, are computed before in
/// a pass over all runs, at the cost of reading the inputs twice.
void PhaseLowering::writeInTurn(Sweep& s, Replicas& replicas, Value width) {
  if (!s.partials.empty()) {
    s.stores = false;
    along(s, replicas, width, {});
  }
  s.stores = true;
  s.collects = false;
  llvm::SaveAndRestore longer(steps_.unroll, steps_.large ? steps_.unroll : unrollInTurn(replicas.size()));
  for (auto [i, r] : llvm::enumerate(replicas)) {
    llvm::SaveAndRestore next(next_, next_ ? l_.add(next_, l_.index(int64_t(i))) : Value());
    along(s, r, width, {});
  }
}

int64_t PhaseLowering::unrollInTurn(size_t runs) const {
  return std::max(steps_.unroll, std::min<int64_t>(steps_.unroll * int64_t(runs), kTurnUnroll));
}

void PhaseLowering::runSweep(SweepOp op, Replicas& replicas, Replica* all) {
  Sweep s(partsOf(op));
  for (Replica& r : replicas) hoist(s, r);
  const unsigned unroll = steps_.unroll;
  Value width = runWidth();
  if (op.getCondition()) width = l_.select(mapped(op.getCondition(), replicas[0].values), width, l_.index(0));
  if (schedule_.getInTurn() && replicas.size() > 1 && !s.writes.empty() && s.slots == 0)
    return writeInTurn(s, replicas, width);
  Values sums =
      along(s, replicas, width, identities(s.combinersOf(replicas.size(), unroll), schedule_.getVector()));
  acrossLanes(s, replicas, sums, all);
  addRowPartials(s, replicas, sums);
}

/// Works on several rows of one block together. Their sums have two levels: a third level was measured to
/// cost 4 % if rows are few.
void PhaseLowering::blockSweep(SweepOp op, Replicas& replicas) {
  Sweep s(partsOf(op));
  const int64_t together = steps_.rows, unroll = steps_.unroll, lanes = schedule_.getVector();
  const SmallVector<Combiner> combiners = s.combinersOf(together, unroll);
  Value width = runWidth(), count = f_.featuresLast() ? f_.rows() : f_.groupWidth(Axis::Group);
  if (op.getCondition()) count = l_.select(mapped(op.getCondition(), replicas[0].values), count, l_.index(0));
  auto rowsFrom = [&](Value row, int64_t n, ValueRange running) {
    Replicas rows(n, replicas[0]);
    for (auto [i, r] : llvm::enumerate(rows)) {
      Value at = l_.add(row, l_.index(i));
      if (f_.featuresLast())
        r.at.row = at;
      else
        r.at.feature = l_.add(l_.mul(r.at.group, f_.groupWidth(Axis::Group)), at);
      hoist(s, r);
    }
    Values own = along(s, rows, width, identities(s.combinersOf(n, unroll), lanes));
    addRowPartials(s, rows, own);
    return l_.combineEach(running, own, combiners);
  };
  auto rowRange = [&](Value begin, Value end, ValueRange from) {
    Value most = l_.add(begin, l_.roundDown(l_.sub(end, begin), together));
    Values sums = l_.forEach(begin, most, together, from,
                             [&](Value row, ValueRange running) { return rowsFrom(row, together, running); });
    if (together == 1) return sums;
    // The rest begins anew: these sums may have kLongestChain terms.
    const SmallVector<Combiner> ofOne = s.combinersOf(1, unroll);
    Values rest = l_.forEach(most, end, 1, identities(ofOne, lanes),
                             [&](Value row, ValueRange running) { return rowsFrom(row, 1, running); });
    llvm::copy(l_.combineEach(ValueRange(sums).take_front(rest.size()), rest, ofOne), sums.begin());
    return sums;
  };
  Values sums = l_.inLevels(l_.index(0), count, together, identities(combiners, lanes), rowRange,
                            together * kLongestChain * kLongestChain, combiners);
  for (auto [k, result] : llvm::enumerate(op.getSums())) {
    Values parts;
    for (int64_t r = 0; r < together; ++r)
      for (int64_t u = 0; u < unroll; ++u) parts.push_back(sums[(r * s.slots + k) * unroll + u]);
    replicas[0].values.map(result, horizontal(l_.tree(parts, s.combiners[k]), s.combiners[k]));
  }
}

void PhaseLowering::columnSweep(SweepOp op, Replicas& replicas) {
  Sweep s(partsOf(op));
  for (Replica& r : replicas) {
    maskOf(r, replicas);
    hoist(s, r);
  }
  Value rows = f_.rows();
  if (op.getCondition()) rows = l_.select(mapped(op.getCondition(), replicas[0].values), rows, l_.index(0));
  const SmallVector<Combiner> combiners = s.combinersOf(replicas.size(), 1);
  Values sums = identities(combiners, lanes_);
  // One vector of every row is loaded and stored before the next vector, so that few registers are live.
  auto rowsAt = [&](Value row, int64_t count, ValueRange running) {
    Values next(running);
    std::vector<SmallVector<Value>> common(count, SmallVector<Value>(s.reads.size()));
    for (auto [r, replica] : llvm::enumerate(replicas)) {
      // The terms of the rows are added first: the sum is rounded less often. Products that the schedule
      // does not add first are added by an fma each.
      std::vector<Values> terms(count, Values(s.slots));
      maskOf(replica, replicas);
      for (int64_t i = 0; i < count; ++i)
        element(s, replica, i ? l_.add(row, l_.index(i)) : row, lanes_, laneMask_, terms[i], 1, common[i]);
      s.flush(f_);
      for (unsigned slot = 0; slot < s.slots; ++slot) {
        Values column;
        for (Values& t : terms) column.push_back(t[slot]);
        Value& sum = next[r * s.slots + slot];
        const Combiner combiner = s.combiners[slot];
        if (steps_.rows == 1 && combiner == Combiner::Add && column[0].getDefiningOp<arith::MulFOp>())
          for (Value product : column) sum = l_.addf(sum, product);
        else
          sum = l_.combine(combiner, sum, l_.tree(column, combiner));
      }
    }
    return next;
  };
  const int64_t together = s.rowsTogether(steps_.rows),
                few = steps_.rows == 1 ? kFlushColumnRows / 2 : kFlushColumnRows;
  auto fewRows = [&](Value begin, Value end) {
    Values inner = identities(combiners, lanes_);
    Value most = l_.add(begin, l_.roundDown(l_.sub(end, begin), together));
    inner = l_.forEach(begin, most, together, inner,
                       [&](Value row, ValueRange from) { return rowsAt(row, together, from); });
    if (together == 1) return inner;
    return l_.forEach(most, end, 1, inner, [&](Value row, ValueRange from) { return rowsAt(row, 1, from); });
  };
  auto rowsBy = [&](int64_t step, Value first, Value last, ValueRange from, auto inner) {
    return l_.forEach(first, last, step, from, [&](Value begin, ValueRange running) {
      return l_.combineEach(running, inner(begin, l_.min(l_.add(begin, l_.index(step)), last)), combiners);
    });
  };
  auto segmentRows = [&](ValueRange from) {
    if (!s.slots) return fewRows(l_.index(0), rows);
    // Split rows are few, and a function with three kinds of tile has no registers for a third level.
    if (schedule_.getStrategy() == Strategy::Split) return rowsBy(few, l_.index(0), rows, from, fewRows);
    return rowsBy(few * kLongestChain, l_.index(0), rows, from, [&](Value begin, Value end) {
      return rowsBy(few, begin, end, identities(combiners, lanes_), fewRows);
    });
  };
  if (slab_.isPer(Axis::Segment)) {
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

}  // namespace normc::codegen
