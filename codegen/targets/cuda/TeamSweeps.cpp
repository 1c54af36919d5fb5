// Sweeps: the accesses of a run, one step of a sweep, its stores and sums, and the shift estimate of a line.
#include "codegen/targets/cuda/TeamLowering.h"
#include "llvm/ADT/bit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/Sums.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Accesses of a tile that one accumulator takes.
static constexpr int64_t kTileSteps = 8;
/// Elements of one loop step whose loads are in flight together, at most four accesses.
static constexpr int64_t kLoopElements = 32;

TeamLowering::Sweep TeamLowering::prepare(SweepOp op) { return Sweep(partsOf(op), partialsOf_.lookup(op)); }

//===-- Positions ---------------------------------------------------------------===//

Value TeamLowering::vectorsOfRun() { return l_.div(width_, l_.index(s_.vector)); }

TeamLowering::Position TeamLowering::positionAt(Value index, bool inside, int64_t replica) {
  Position p;
  if (!inside) {
    Value count = peels_.empty() ? vectorsOfRun() : peels_[replica].vectors;
    p.inside = l_.less(index, count);
    index = l_.min(index, l_.sub(count, l_.index(1)));
  }
  p.offset = l_.mul(index, l_.index(s_.vector));
  if (!peels_.empty()) p.offset = l_.add(p.offset, peels_[replica].head);
  return p;
}

/// Returns the k-th access of this thread. After those of the tile come its elements at the ends of a peeled
/// run.
TeamLowering::Position TeamLowering::tilePosition(int64_t k, int64_t replica) {
  if (k >= k_.tileCount()) return endPosition(k - k_.tileCount(), replica);
  auto known = Loops::constant(peels_.empty() ? vectorsOfRun() : leastVectors());
  bool inside = known && (k + 1) * place_.team <= *known;
  Position p = positionAt(l_.add(place_.lane, l_.index(k * place_.team)), inside, replica);
  p.index = k;
  return p;
}

//===-- Reading -----------------------------------------------------------------===//

/// Loads where the condition holds, else returns zero. Memory outside of the run is not read: another team
/// may store to it.
Value TeamLowering::loadWhere(Value condition, TensorOp t, const Coordinates& at, int64_t lanes,
                              int64_t replica) {
  auto load = [&] { return f_.widened(t, loadStored(t, at, lanes, replica)); };
  if (!condition) return load();
  Type type = lanes ? Type(VectorType::get({lanes}, f_.statistics())) : f_.statistics();
  return l_.when(condition, l_.zero(type), [&] { return Values{load()}; })[0];
}

Coordinates TeamLowering::alongRun(const Coordinates& from, const Position& position) {
  Coordinates at = from;
  (f_.featuresLast() ? at.feature : at.row) = l_.add(runBegin_, position.offset);
  return at;
}

/// Reads the tensors at every position of the tile that has not been read. All loads of a run are
/// in flight before the first is used.
void TeamLowering::fetch(ArrayRef<TensorOp> tensors, ArrayRef<Replica> replicas) {
  const int64_t positions = s_.tile + endPositions();
  SmallVector<std::pair<TensorOp, int64_t>> missing;  // of which replica and place
  SmallVector<Type> types;
  for (size_t r = 0; r < replicas.size(); ++r)
    for (int64_t k = 0; k < positions; ++k)
      for (TensorOp t : tensors)
        if (!held_.lookup({t.getOperation(), heldKey(r, k)})) {
          missing.emplace_back(t, heldKey(r, k));
          types.push_back(k_.storedType(t, lanesAt(tilePosition(k, r))));
        }
  const Values loaded = readRuns(types, [&] {
    Values all;
    for (auto [r, replica] : llvm::enumerate(replicas)) {
      for (int64_t first = 0, end; first < positions; first = end) {
        Position position = tilePosition(first, r);
        end = first + 1;
        while (!position.inside && end < s_.tile && !tilePosition(end, r).inside) ++end;
        SmallVector<std::pair<TensorOp, int64_t>> wanted;
        for (int64_t k = first; k < end; ++k)
          for (TensorOp t : tensors)
            if (!held_.lookup({t.getOperation(), heldKey(r, k)})) wanted.emplace_back(t, k);
        auto loads = [&, r = r] {
          Values loaded;
          for (auto [t, k] : wanted)
            loaded.push_back(loadStored(t, alongRun(replica.at, tilePosition(k, r)), lanesAt(position), r));
          return loaded;
        };
        Values zeros;
        for (auto [t, k] : wanted) zeros.push_back(l_.zero(k_.storedType(t, lanesAt(position))));
        Value condition = k_.both(k_.both(replica.active, position.inside), fetchCondition_);
        all.append(condition && !wanted.empty() ? l_.when(condition, zeros, loads) : loads());
      }
    }
    return all;
  });
  // After all loads have been issued: a conversion waits for its load.
  for (auto [m, v] : llvm::zip(missing, loaded))
    held_[{m.first.getOperation(), m.second}] = f_.widened(m.first, v);
}

//===-- One step ------------------------------------------------------------------===//

/// Runs the sweep on one access of every replica.
void TeamLowering::element(Sweep& s, MutableArrayRef<Replica> replicas, PositionOf positionOf,
                           MutableArrayRef<Value> sums) {
  Block& body = s.op.getBody().front();
  bool column = kind_ == Kind::Column;
  Position position = positionOf(0);
  const int64_t lanes = lanesAt(position);
  SmallVector<Value> common(s.reads.size());
  SmallVector<SmallVector<Value>> contributions(s.partials.size());
  auto place = [&](const Replica& r) { return column ? r.at : alongRun(r.at, position); };
  auto only = [&](Value condition, Value v) {
    return condition ? l_.select(condition, v, l_.zero(v.getType())) : v;
  };
  // The pilot rows of a task give the shift estimate, which no single row should move.
  bool robust = slab_.getHead() && replicas.size() == 8 && !f_.kernel().hasMask();
  auto together = [&](ArrayRef<Value> rows) { return robust ? l_.scale(l_.middle(rows), 8) : l_.tree(rows); };

  for (auto [r, replica] : llvm::enumerate(replicas)) {
    position = positionOf(r);
    Coordinates at = place(replica);
    for (auto [i, t] : llvm::enumerate(s.reads)) {
      if (s.hoisted[i]) continue;
      Value v = s.shared[i] && (peels_.empty() || congruent_)
                    ? common[i]
                    : Value();  // peeled runs begin each at its own element
      if (!v && position.index >= 0) v = loadedVectors_.lookup({t.getOperation(), position.index});
      if (!v && position.index >= 0) v = held_.lookup({t.getOperation(), heldKey(r, position.index)});
      if (!v) {
        Value condition =
            t.isXSized() ? k_.both(replica.active, column ? inside_ : position.inside) : Value();
        if (position.slot && llvm::is_contained(sharedTensors_, t))
          v = loadShared(t, position, condition);
        else
          v = loadWhere(condition, t, at, column && !t.hasAxis(Axis::Feature) ? 0 : lanes, r);
      }
      common[i] = v;
      replica.values.map(body.getArgument(i), v);
    }
    const Values yielded = elementCode(s.op, replica);
    auto value = [&](unsigned i) { return l_.broadcast(yielded[i], lanes); };
    unsigned next = 0;
    for (TensorOp t : s.writes) {
      Value condition = k_.both(k_.both(replica.active, column ? inside_ : position.inside),
                                isPresent_.lookup(t.getSymName()));
      Value congruent = lanes && !peels_.empty() ? peels_[r].congruent.lookup(t) : Value();
      s.pending.push_back({t, f_.address(t, at), value(next++), condition, congruent});
    }
    size_t slot = r * s.slots;
    auto add = [&](Value v) {
      v = only(position.inside, v);
      if (kind_ != Kind::Run) v = only(replica.active, v);
      sums[slot] = l_.addf(sums[slot], v);
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
    Value sum = together(contributions[k]);
    if (sums_.empty()) {  // straight to memory: this thread is the only one of its columns
      auto add = [&, t = t] {
        Value address = f_.address(t, place(replicas[0]));
        f_.store(t, address, l_.addf(f_.load(t, address, lanes, {}), sum), {});
        return Values();
      };
      if (position.inside)
        l_.when(position.inside, {}, add);
      else
        add();
    } else if (position.slot) {
      addShared(partial++, position, only(position.inside, sum));
    } else {
      Value& running = sums_[partial++ * (k_.tileCount() + endPositions()) + position.index];
      running = l_.addf(running, only(position.inside, sum));
    }
  }
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
        f_.store(p.tensor, p.address, p.value, {}, alignment ? alignment : wholeAlignment(p.tensor));
      return Values();
    };
    auto store = [&] {
      if (!congruent) return make({});
      l_.when(congruent, {}, [&] { return make({}); });
      return l_.when(l_.isFalse(congruent), {}, [&] { return make(0); });
    };
    if (condition)
      l_.when(condition, {}, store);
    else
      store();
    i = end;
  }
  s.pending.clear();
}

/// The least elements of a run that the shift estimate samples, because a single one may be an outlier.
static constexpr int64_t kLeastProbed = 4;

/// Returns the shift estimate. Of a run it is the mean of the first access of a power of two of threads and
/// of one in the middle: if threads hold the run, they read these accesses anyway.
Value TeamLowering::probe(ProbeOp op, Replica& replica) {
  if (kind_ != Kind::Run) {
    TensorOp x = f_.tensor(op.getTensor());
    if (llvm::is_contained(heldTensors_, x) && !f_.kernel().hasMask() &&
        k_.threads() / place_.span >= kProbedRows)
      return probeHeld(x, replica);
    if (f_.kernel().hasMask()) (void)rowsOf(probedScope(), replica.at.segment);  // by all threads
    auto value = [&] { return Values{SlabLowering::probe(op, replica)}; };
    // An idle lane does not read, because its neighbour may store there. No thread stores before all have
    // read: over a grid the barrier of the sums comes before the first store.
    Value shift =
        kind_ == Kind::Column && inside_ ? l_.when(inside_, l_.zero(k_.vectorType()), value)[0] : value()[0];
    if (k_.gridded())
      k_.barrier();
    else
      tree_.taskBarrier();
    return shift;
  }
  TensorOp x = f_.tensor(op.getTensor());
  auto mean = [&](int64_t threads, const Position& begin, const Position& middle) {
    int64_t lanes = k_.lanes();
    auto at = [&](const Position& position) {
      Value here = held_.lookup({x.getOperation(), heldKey(replica.index, position.index)});
      if (here && position.index >= 0) return here;
      return loadWhere(k_.both(replica.active, position.inside), x, alongRun(replica.at, position), lanes,
                       replica.index);
    };
    Value asked = l_.addf(at(begin), at(middle));
    SmallVector<Value> sum{lanes ? horizontal(asked) : asked};
    if (threads < place_.team)
      sum[0] = l_.select(l_.less(place_.lane, l_.index(threads)), sum[0], l_.zero(sum[0].getType()));
    tree_.overRun(sum, place_);
    return l_.scale(sum[0], 0.5 / double(threads * s_.vector));
  };
  Value count = peels_.empty() ? vectorsOfRun() : leastVectors();
  if (auto known = Loops::constant(count)) {
    int64_t threads = int64_t(llvm::bit_floor(uint64_t(std::min(*known, place_.team))));
    if (*known == 0 || threads * s_.vector < kLeastProbed) {
      auto some = [&] { return Values{SlabLowering::probe(op, replica)}; };
      return replica.active ? l_.when(replica.active, l_.zero(f_.statistics()), some)[0] : some()[0];
    }
    int64_t half = *known / 2 / place_.team;
    if (s_.shared)
      half =
          std::min(half, k_.tileCount() - 1);  // the rest is being copied to shared memory, and is read once
    return mean(threads, tilePosition(0, replica.index),
                half < k_.tileCount()
                    ? tilePosition(half, replica.index)
                    : positionAt(l_.add(place_.lane, l_.index(half * place_.team)), true, replica.index));
  }
  int64_t threads = int64_t(llvm::bit_floor(uint64_t(place_.team)));
  const bool ever = threads * s_.vector >= 16;
  Value isShort = ever ? l_.less(count, l_.index(place_.team)) : Value(),
        condition = k_.both(replica.active, isShort);
  auto firstOnes = [&] { return Values{SlabLowering::probe(op, replica)}; };
  Value few = condition ? l_.when(condition, l_.zero(f_.statistics()), firstOnes)[0] : firstOnes()[0];
  if (!ever) return few;
  Value value;
  k_.uncounted([&] {  // short runs do not pass its barriers
    value = l_.when(l_.less(l_.index(place_.team - 1), count), few, [&] {
      Value middle = l_.mul(l_.div(count, l_.index(2 * place_.team)), l_.index(place_.team));
      return Values{mean(threads, positionAt(place_.lane, true, replica.index),
                         positionAt(l_.add(place_.lane, middle), true, replica.index))};
    })[0];
  });
  return value;
}

//===-- Along a run -----------------------------------------------------------------===//

void TeamLowering::along(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  for (Replica& r : replicas) hoist(s, r);
  if (s_.tile > 0) {
    SmallVector<TensorOp> tensors;
    for (TensorOp t : s.reads)
      if (t.isXSized()) tensors.push_back(t);
    auto before = held_;
    fetch(tensors, replicas);
    for (int64_t first = 0; first < s_.tile; first += kTileSteps) {
      Values own(sums.size(), l_.zero(k_.vectorType()));
      for (int64_t k = first; k < std::min(first + kTileSteps, s_.tile); ++k)
        element(s, replicas, [&](int64_t r) { return tilePosition(k, r); }, own);
      for (auto [i, v] : llvm::enumerate(own)) sums[i] = first ? l_.addf(sums[i], v) : v;
    }
    alongShared(s, replicas, sums);
    sumEnds(s, replicas, sums);
    if (!holds_) held_ = before;
    storePending(s);
    return;
  }
  auto stride = [&](int64_t accesses) { return place_.team * accesses; };
  auto accesses = [&](Value begin, Value end, int64_t count, ValueRange from) {
    return l_.forEach(l_.add(begin, place_.lane), end, stride(count), from, [&](Value i, ValueRange running) {
      SmallVector<Values> terms(count,
                                Values(running.size(), running.empty() ? Value() : l_.zero(k_.vectorType())));
      for (int64_t u = 0; u < count; ++u)
        element(
            s, replicas, [&](int64_t r) { return positionAt(l_.add(i, l_.index(stride(u))), true, r); },
            terms[u]);
      storePending(s);
      Values next(running);
      for (auto [k, v] : llvm::enumerate(next)) {
        SmallVector<Value> parts;
        for (Values& term : terms) parts.push_back(term[k]);
        v = l_.addf(v, l_.tree(parts));
      }
      return next;
    });
  };
  bool chained = sums_.empty() && !s.partials.empty();  // each access adds to memory that the next may touch
  int64_t together = chained ? 1 : std::clamp<int64_t>(kLoopElements / s_.vector, 1, 4);
  Value count = peels_.empty() ? vectorsOfRun() : peels_[0].vectors,
        whole = together > 1 ? l_.roundDown(count, stride(together)) : count;
  Values zeros(sums.size(), l_.zero(k_.vectorType()));
  auto levels = [&](Value begin, Value end, int64_t unroll) {
    if (sums.empty()) return void(accesses(begin, end, unroll, {}));
    int64_t block = stride(kLongestChain * unroll);
    sums = l_.forEach(begin, end, block, sums, [&](Value first, ValueRange running) {
      Values inner = accesses(first, l_.min(l_.add(first, l_.index(block)), end), unroll, zeros);
      for (auto [i, v] : llvm::enumerate(inner)) v = l_.addf(running[i], v);
      return inner;
    });
  };
  levels(l_.index(0), whole, together);
  if (together > 1) levels(whole, count, 1);
  sumEnds(s, replicas, sums);
  storePending(s);
}

/// Adds the ends of each run to the first lane of the sums.
void TeamLowering::sumEnds(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  for (int64_t i = 0; i < endPositions(); ++i) {
    Values own(sums.size(), l_.zero(f_.statistics()));
    element(s, replicas, [&](int64_t r) { return endPosition(i, r); }, own);
    for (auto [sum, v] : llvm::zip(sums, own)) {
      Value first = vector::ExtractOp::create(l_.b, l_.loc, sum, 0);
      sum = vector::InsertOp::create(l_.b, l_.loc, l_.addf(first, v), sum, 0);
    }
  }
}

/// Runs `sweep` if its condition holds. Else its sums are zero and nothing is read.
void TeamLowering::where(SweepOp op, const IRMapping& values, Values& sums,
                         llvm::function_ref<void()> sweep) {
  if (!op.getCondition()) return sweep();
  auto held = held_;
  size_t count = sums.size();
  Values before(sums);
  before.append(sums_);
  Values after = l_.when(mapped(op.getCondition(), values), before, [&] {
    sweep();
    Values now(sums);
    now.append(sums_);
    return now;
  });
  sums.assign(after.begin(), after.begin() + count);
  sums_.assign(after.begin() + count, after.end());
  held_ = held;
}

bool TeamLowering::alwaysUnder(Value condition) {
  return llvm::all_of(slab_.getOps<SweepOp>(),
                      [&](SweepOp sweep) { return sweep.getCondition() == condition; });
}

void TeamLowering::lineSweep(SweepOp op, Replicas& replicas) {
  Sweep s = prepare(op);
  Values sums(replicas.size() * s.slots, l_.zero(k_.vectorType()));
  if (holds_ && op.getCondition() &&
      alwaysUnder(op.getCondition())) {  // read once, for all sweeps under the condition
    fetchCondition_ = mapped(op.getCondition(), replicas[0].values);
    SmallVector<TensorOp> tensors;
    for (TensorOp t : s.reads)
      if (t.isXSized()) tensors.push_back(t);
    fetch(tensors, replicas);
    fetchCondition_ = {};
  }
  where(op, replicas[0].values, sums, [&] { along(s, replicas, sums); });
  endSums(s, replicas, sums);
}

/// Ends sums of runs: results of the sweep, and partials of whole runs.
void TeamLowering::endSums(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  if (sums.empty()) return;
  if (s_.vector > 1)
    for (Value& v : sums) v = horizontal(v);
  tree_.overRun(sums, place_);
  for (auto [r, replica] : llvm::enumerate(replicas)) {
    size_t slot = r * s.slots;
    for (auto [k, result] : llvm::enumerate(s.op.getSums())) replica.values.map(result, sums[slot++]);
    for (auto [k, t] : llvm::enumerate(s.partials)) {
      if (!s.runPartial[k]) continue;
      Value leader =
          kind_ == Kind::Run ? k_.both(k_.isZero(place_.lane), replica.active) : k_.isZero(k_.thread);
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
  size_t slots = alone ? 0 : s.op.getSums().size();
  Values sums = steps(l_.index(0), count, place_.units * s_.rows, Values(slots, l_.zero(k_.vectorType())),
                      [&](Value first, Values& running) {
                        Replicas rows(s_.rows, whole);
                        for (int64_t r = 0; r < s_.rows; ++r)
                          placeUnit(rows[r], first, r, count, [&](Value at) {
                            if (overSegments)
                              rows[r].at.segment = at;
                            else if (f_.featuresLast())
                              rows[r].at.row = at;
                            else
                              rows[r].at.feature =
                                  l_.add(l_.mul(whole.at.group, f_.groupWidth(Axis::Group)), at);
                          });
                        Values own(rows.size() * s.slots, l_.zero(k_.vectorType()));
                        along(s, rows, own);
                        if (alone) {
                          endSums(s, rows, own);
                          return k_.barrier();
                        }
                        for (size_t r = 0; r < rows.size(); ++r)
                          for (size_t k = 0; k < slots; ++k)
                            running[k] = l_.addf(running[k], own[r * s.slots + k]);
                      });
  if (slots == 0) return;
  if (s_.vector > 1)
    for (Value& v : sums) v = horizontal(v);
  tree_.overTeam(sums, s_.threads);
  for (auto [result, v] : llvm::zip(op.getSums(), sums)) whole.values.map(result, v);
}

void TeamLowering::streamStep(SweepOp op, Replicas& rows) {
  Sweep s = prepare(op);
  Values none;
  along(s, rows, none);
}

}  // namespace normc::codegen::cuda
