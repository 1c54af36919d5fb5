// Sweeps: one step of a sweep, its stores and sums, and the loops along and across runs.
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/Sums.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Accesses of a tile that one accumulator takes.
static constexpr int64_t kTileSteps = 8;
/// Elements of one loop step whose loads are in flight together, at most four accesses.
static constexpr int64_t kLoopElements = 32;

/// Elements of one step of a loop over shared memory that are in registers together, at most four accesses;
/// half as many if scale and bias are shifted.
static constexpr int64_t kTogether = 16;
TeamLowering::Sweep TeamLowering::prepare(SweepOp op) { return Sweep(partsOf(op), partials_.firstOf(op)); }

//===-- One step ------------------------------------------------------------------===//

/// Runs the sweep on one access of every replica.
void TeamLowering::element(Sweep& s, MutableArrayRef<Replica> replicas, PositionOf positionOf,
                           MutableArrayRef<Value> sums) {
  Block& body = s.op.getBody().front();
  bool column = kind_ == Kind::Column;
  Position position = positionOf(0);
  const int64_t lanes = access_->lanes(position);
  SmallVector<Value> common(s.reads.size());
  SmallVector<SmallVector<Value>> contributions(s.partials.size());
  auto place = [&](const Replica& r) { return column ? r.at : access_->along(r.at, position); };
  auto only = [&](Value condition, Value v, Combiner combiner = Combiner::Add) {
    return condition ? l_.select(condition, v, l_.identity(combiner, v.getType())) : v;
  };

  for (auto [r, replica] : llvm::enumerate(replicas)) {
    position = positionOf(r);
    Coordinates at = place(replica);
    for (auto [i, t] : llvm::enumerate(s.reads)) {
      if (s.hoisted[i]) continue;
      Value v = s.shared[i] && (!access_->anywhere() || access_->byClasses())
                    ? common[i]
                    : Value();  // peeled runs begin each at its own element
      const bool pair = i >= s.firstMate || t.hasAxis(Axis::Pair);
      if (!v && !pair && position.index >= 0) v = held_.vector(t, position.index);
      if (!v && !pair && position.index >= 0) v = held_.find(t, r, position.index);
      if (!v && !pair && sharedVectors_.has(t, position)) v = sharedVectors_.load(t, position);
      if (!v && pair) v = ofPair(s, i, at, lanes, l_.both(replica.active, position.inside));
      if (!v) {
        // Rows that a column keeps may be behind the last segment.
        const bool ofSegment = t.hasAxis(Axis::Segment) && t.hasAxis(Axis::Feature);
        const bool guarded = t.isXSized() || (ofSegment && (column || access_->byClasses()));
        Value condition = guarded ? l_.both(replica.active, column ? inside_ : position.inside) : Value();
        if (position.slot && sharedRuns_.has(t))
          v = sharedRuns_.load(t, position, condition);
        else
          v = access_->load(condition, t, at, column && !t.hasAxis(Axis::Feature) ? 0 : lanes, r);
      }
      common[i] = v;
      replica.values.map(body.getArgument(i), v);
    }
    if (Value turned = s.op.isTurned()) replica.values.map(turned, isTurned(at.feature, lanes));
    const Values yielded = elementCode(s.op, replica);
    auto value = [&](unsigned i) { return l_.broadcast(yielded[i], lanes); };
    unsigned next = 0;
    for (TensorOp t : s.writes) {
      Value condition = l_.both(l_.both(replica.active, column ? inside_ : position.inside),
                                isPresent_.lookup(t.getSymName()));
      Value congruent = lanes ? access_->isWhole(t, r) : Value();
      s.pending.push_back({t, f_.address(t, at), value(next++), condition, congruent});
    }
    size_t slot = r * s.slots;
    auto add = [&](Value v) {
      const Combiner combiner = s.combiners[slot - r * s.slots];
      v = only(position.inside, v, combiner);
      if (kind_ != Kind::Run) v = only(replica.active, v, combiner);
      sums[slot] = l_.combine(combiner, sums[slot], v);
      ++slot;
    };
    for (size_t k = 0; k < s.op.getSums().size(); ++k) add(value(next++));
    for (size_t k = 0; k < s.partials.size(); ++k) {
      if (s.runPartial[k])
        add(value(next++));
      else
        contributions[k].push_back(only(replica.active, value(next++)));
    }
  }
  size_t partial = s.firstPartial;
  for (auto [k, t] : llvm::enumerate(s.partials)) {
    if (s.runPartial[k]) continue;
    Value sum = sumOfRows(contributions[k]);
    if (!partials_.inRegisters()) {  // straight to memory: this thread is the only one of its columns
      k_.storeWhere(position.inside, [&, t = t] {
        Value address = f_.address(t, place(replicas[0]));
        f_.store(t, address, l_.addf(f_.load(t, address, lanes, {}), sum), {});
      });
    } else {
      partials_.add(partial++, position, only(position.inside, sum));
    }
  }
}

/// Loads what belongs to the pairs of an access that `rope` turns: elements of the mates, and the angles.
/// From memory: another thread has them in registers.
Value TeamLowering::ofPair(const Sweep& s, size_t read, const Coordinates& at, int64_t lanes,
                           Value condition) {
  const Type type = lanes ? k_.vectorType() : f_.statistics();
  return k_.loadWhere(condition, type, [&] {
    if (hasWholePairs(lanes)) return Values{loadRead(s, read, at, lanes, {})};
    return Values{k_.lanesOf([&](int64_t lane) {
      Coordinates there = at;
      there.feature = l_.add(at.feature, l_.index(lane));
      return loadRead(s, read, there, 0, {});
    })};
  })[0];
}

/// True if the pairs of an access are loaded in whole vectors.
bool TeamLowering::hasWholePairs(int64_t lanes) {
  return !lanes || (!access_->anywhere() && PairLowering(l_, f_).hasWholeVectors(lanes));
}

Value TeamLowering::isTurned(Value feature, int64_t lanes) {
  PairLowering pairs(l_, f_);
  if (hasWholePairs(lanes)) return pairs.isTurned(feature, lanes);
  return k_.lanesOf([&](int64_t lane) { return pairs.isTurned(l_.add(feature, l_.index(lane)), 0); });
}

void TeamLowering::storePending(Sweep& s) {
  for (size_t i = 0; i < s.pending.size();) {
    Value condition = s.pending[i].condition, congruent = s.pending[i].congruent;
    size_t end = i;
    while (end < s.pending.size() && s.pending[end].condition == condition &&
           s.pending[end].congruent == congruent)
      ++end;
    auto make = [&](std::optional<int64_t> alignment) {
      for (const auto& p : ArrayRef(s.pending).slice(i, end - i))
        f_.store(p.tensor, p.address, p.value, {}, alignment ? alignment : access_->alignment(p.tensor));
    };
    k_.storeWhere(condition, [&] {
      if (!congruent) return make({});
      k_.storeWhere(congruent, [&] { make({}); });
      k_.storeWhere(l_.isFalse(congruent), [&] { make(0); });
    });
    i = end;
  }
  s.pending.clear();
}

//===-- Along a run -----------------------------------------------------------------===//

void TeamLowering::alongTile(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  held_.fetch(s.xSizedReads(), replicas);
  const auto combiners = s.combinersOf(replicas.size(), 1);
  for (int64_t first = 0; first < s_.tile; first += kTileSteps) {
    Values own = k_.identities(combiners, k_.vectorType());
    for (int64_t k = first; k < std::min(first + kTileSteps, s_.tile); ++k)
      element(s, replicas, [&](int64_t r) { return access_->ofTile(k, r); }, own);
    sums = first ? l_.combineEach(sums, own, combiners) : own;
  }
  alongShared(s, replicas, sums);
  sumEnds(s, replicas, sums);
}

/// Runs a sweep over these accesses, after those in registers, and stores its outputs at once.
void TeamLowering::alongShared(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  if (!s_.shared) return;
  storePending(s);
  const int64_t elements = s_.vector * std::max<int64_t>(1, sharedRuns_.reads());
  const int64_t together =
      std::clamp<int64_t>((access_->anywhere() ? kTogether / 2 : kTogether) / elements, 1, 4);
  const auto combiners = s.combinersOf(replicas.size(), 1);
  const Values none = k_.identities(combiners, k_.vectorType());
  Values own =
      sharedRuns_.forEach(together, none, combiners, [&](ArrayRef<Position> positions, Values& running) {
        SmallVector<Values> terms(positions.size(), none);
        for (auto [p, term] : llvm::zip(positions, terms))
          element(s, replicas, [&](int64_t) { return p; }, term);
        storePending(s);
        for (auto [k, v] : llvm::enumerate(running)) {
          SmallVector<Value> parts;
          for (const Values& term : terms) parts.push_back(term[k]);
          v = l_.combine(combiners[k], v, l_.tree(parts, combiners[k]));
        }
      });
  sums = l_.combineEach(sums, own, combiners);
}

void TeamLowering::along(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  for (Replica& r : replicas) hoist(s, r);
  if (s_.tile > 0 && !blockWidth_) {
    held_.whileHeld(holds(), [&] { alongTile(s, replicas, sums); });
    return storePending(s);
  }
  const auto combiners = s.combinersOf(sums.empty() ? 0 : replicas.size(), 1);
  const Values none = k_.identities(combiners, k_.vectorType());
  auto stride = [&](int64_t accesses) { return run_.place.team * accesses; };
  auto accesses = [&](Value begin, Value end, int64_t count, ValueRange from) {
    return l_.forEach(
        l_.add(begin, run_.place.lane), end, stride(count), from, [&](Value i, ValueRange running) {
          SmallVector<Values> terms(count, none);
          for (int64_t u = 0; u < count; ++u)
            element(
                s, replicas, [&](int64_t r) { return access_->at(l_.add(i, l_.index(stride(u))), true, r); },
                terms[u]);
          storePending(s);
          Values next(running);
          for (auto [k, v] : llvm::enumerate(next)) {
            SmallVector<Value> parts;
            for (Values& term : terms) parts.push_back(term[k]);
            v = l_.combine(combiners[k], v, l_.tree(parts, combiners[k]));
          }
          return next;
        });
  };
  bool chained =
      !partials_.inRegisters() && !s.partials.empty();  // each access adds to memory that the next may touch
  int64_t together = chained ? 1 : std::clamp<int64_t>(kLoopElements / s_.vector, 1, 4);
  Value count = access_->count(), whole = together > 1 ? l_.roundDown(count, stride(together)) : count;
  auto levels = [&](Value begin, Value end, int64_t unroll) {
    if (sums.empty()) return void(accesses(begin, end, unroll, {}));
    int64_t block = stride(kLongestChain * unroll);
    sums = l_.forEach(begin, end, block, sums, [&](Value first, ValueRange running) {
      Values inner = accesses(first, l_.min(l_.add(first, l_.index(block)), end), unroll, none);
      return l_.combineEach(running, inner, combiners);
    });
  };
  levels(l_.index(0), whole, together);
  if (together > 1) levels(whole, count, 1);
  if (!blockWidth_) sumEnds(s, replicas, sums);
  storePending(s);
}

/// Adds the ends of each run to the first lane of the sums.
void TeamLowering::sumEnds(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  const auto combiners = s.combinersOf(replicas.size(), 1);
  for (int64_t i = 0; i < access_->ends(); ++i) {
    Values own = k_.identities(combiners, f_.statistics());
    element(s, replicas, [&](int64_t r) { return access_->end(i, r); }, own);
    for (auto [k, sum] : llvm::enumerate(sums)) {
      Value first = vector::ExtractOp::create(l_.b, l_.loc, sum, 0);
      sum = vector::InsertOp::create(l_.b, l_.loc, l_.combine(combiners[k], first, own[k]), sum, 0);
    }
  }
}

/// Runs `sweep` if its condition holds. Else its sums are zero and nothing is read.
void TeamLowering::where(SweepOp op, const IRMapping& values, Values& sums,
                         llvm::function_ref<void()> sweep) {
  if (!op.getCondition()) return sweep();
  Values& partials = partials_.carried();
  const size_t count = sums.size();
  Values before(sums), after;
  before.append(partials);
  held_.whileHeld(false, [&] {
    after = l_.when(mapped(op.getCondition(), values), before, [&] {
      sweep();
      Values now(sums);
      now.append(partials);
      return now;
    });
  });
  sums.assign(after.begin(), after.begin() + count);
  partials.assign(after.begin() + count, after.end());
}

/// True if the slab's runs stay in registers.
bool TeamLowering::holds() { return kind_ == Kind::Run && slab_.getResident() && s_.tile > 0; }

bool TeamLowering::alwaysUnder(Value condition) {
  return llvm::all_of(slab_.getOps<SweepOp>(),
                      [&](SweepOp sweep) { return sweep.getCondition() == condition; });
}

void TeamLowering::lineSweep(SweepOp op, Replicas& replicas) {
  Sweep s = prepare(op);
  Values sums = k_.identities(s.combinersOf(replicas.size(), 1), k_.vectorType());
  if (holds() && !blockWidth_ && op.getCondition() &&
      alwaysUnder(op.getCondition()))  // read once, for all of these sweeps
    held_.fetch(s.xSizedReads(), replicas, mapped(op.getCondition(), replicas[0].values));
  where(op, replicas[0].values, sums, [&] { along(s, replicas, sums); });
  endSums(s, replicas, sums);
}

/// Ends sums of runs: results of the sweep, and partials of whole runs.
void TeamLowering::endSums(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  if (sums.empty()) return;
  const auto combiners = s.combinersOf(replicas.size(), 1);
  if (s_.vector > 1)
    for (auto [i, v] : llvm::enumerate(sums)) v = horizontal(v, combiners[i]);
  if (blockWidth_)
    tree_.overTeam(sums, run_.place.team, combiners);
  else
    tree_.overRun(sums, run_.place, combiners);
  for (auto [r, replica] : llvm::enumerate(replicas)) {
    size_t slot = r * s.slots;
    for (auto [k, result] : llvm::enumerate(s.op.getSums())) replica.values.map(result, sums[slot++]);
    for (auto [k, t] : llvm::enumerate(s.partials)) {
      if (!s.runPartial[k]) continue;
      Value leader =
          kind_ == Kind::Run ? l_.both(k_.isZero(run_.place.lane), replica.active) : k_.isZero(k_.thread);
      k_.storeWhere(leader, [&, t = t] {
        Value address = f_.address(t, replica.at);
        f_.store(t, address, l_.addf(f_.load(t, address, 0, {}), sums[slot]), {});
      });
      ++slot;
    }
  }
}

//===-- Across runs ---------------------------------------------------------------===//

void TeamLowering::blockSweep(SweepOp op, Replicas& replicas) {
  Sweep s = prepare(op);
  Replica& whole = replicas[0];
  bool overSegments = !slab_.isPer(Axis::Segment);
  bool alone = llvm::is_contained(s.runPartial, true);  // whole runs are summed one by one
  Value count = overSegments ? f_.segments() : f_.featuresLast() ? f_.rows() : f_.groupWidth(Axis::Group);
  if (op.getCondition()) count = l_.select(mapped(op.getCondition(), whole.values), count, l_.index(0));
  const size_t slots = alone ? 0 : s.op.getSums().size();
  const auto combiners = ArrayRef(s.combiners).take_front(slots);
  Values sums = partials_.forEachStep(
      {l_.index(0), count}, run_.place.units * s_.rows, k_.identities(combiners, k_.vectorType()),
      [&](Value first, Values& running) {
        Replicas rows(s_.rows, whole);
        for (int64_t r = 0; r < s_.rows; ++r)
          placeUnit(rows[r], first, r, count, [&](Value at) {
            if (overSegments)
              rows[r].at.segment = at;
            else if (f_.featuresLast())
              rows[r].at.row = at;
            else
              rows[r].at.feature = l_.add(l_.mul(whole.at.group, f_.groupWidth(Axis::Group)), at);
          });
        Values own = k_.identities(s.combinersOf(rows.size(), 1), k_.vectorType());
        along(s, rows, own);
        if (alone) {
          endSums(s, rows, own);
          return k_.barrier();
        }
        for (size_t r = 0; r < rows.size(); ++r)
          for (size_t k = 0; k < slots; ++k)
            running[k] = l_.combine(combiners[k], running[k], own[r * s.slots + k]);
      },
      combiners);
  if (slots == 0) return;
  if (s_.vector > 1)
    for (auto [i, v] : llvm::enumerate(sums)) v = horizontal(v, combiners[i]);
  tree_.overTeam(sums, s_.threads, combiners);
  for (auto [result, v] : llvm::zip(op.getSums(), sums)) whole.values.map(result, v);
}

void TeamLowering::streamStep(SweepOp op, Replicas& rows) {
  Sweep s = prepare(op);
  Values none;
  along(s, rows, none);
}

}  // namespace normc::codegen::cuda
