// Accumulators of partials, and how they reach memory.
#include "codegen/targets/cuda/PartialSums.h"

#include "codegen/targets/cuda/Variants.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "runtime/abi/Sums.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Steps after which sums of partials go to memory, so that the error of a long sum does not grow with its
/// length. More than elsewhere, because it costs an exchange between threads.
static constexpr int64_t kFlushPartialSteps = 64;

/// Returns the tensors that the operation adds to.
static llvm::SmallVector<StringRef> addedIn(Operation* op) {
  llvm::SmallVector<StringRef> names;
  op->walk([&](Operation* inner) {
    if (auto add = dyn_cast<AccumulateOp>(inner)) names.push_back(add.getTensor());
    if (auto sweep = dyn_cast<SweepOp>(inner))
      for (auto name : sweep.getPartials().getAsRange<FlatSymbolRefAttr>()) names.push_back(name.getValue());
  });
  return names;
}

/// True if what the slab adds to the partials of a task comes before everything else, in one walk over the
/// task's units.
static bool addsFirst(SlabOp slab) {
  const bool once = slab.getKind() == SlabKind::Run ||
                    (slab.getKind() == SlabKind::Stream && llvm::hasSingleElement(slab.sweeps()));
  if (!once) return false;
  const auto own = addedIn(slab);
  for (Operation* op = slab->getPrevNode(); op; op = op->getPrevNode())
    if (llvm::any_of(addedIn(op), [&](StringRef name) { return llvm::is_contained(own, name); }))
      return false;
  return true;
}

bool PartialSums::storesAll(PhaseOp phase) const {
  llvm::SmallVector<SlabOp> adding;
  for (Operation& op : phase.getBody().front())
    if (!addedIn(&op).empty()) {
      if (!isa<SlabOp>(op)) return false;
      adding.push_back(cast<SlabOp>(op));
    }
  if (adding.size() != 1 || k_.s.tile == 0 || access_.byClasses()) return false;
  SlabOp slab = adding[0];
  const auto always = [](SweepOp sweep) { return !sweep.getCondition(); };
  const auto inRegisters = [&](StringRef name) {
    return f_.tensor(name).hasAxis(f_.featuresLast() ? Axis::Feature : Axis::Row);
  };
  return addsFirst(slab) && !slab.getHead() && slab.getOps<AccumulateOp>().empty() &&
         llvm::all_of(slab.sweeps(), always) && llvm::all_of(addedIn(slab), inRegisters);
}

void PartialSums::beginNone() {
  tensors_.clear();
  firstOf_.clear();
  sums_.clear();
  firstUnit_ = {};
}

void PartialSums::begin(SlabOp slab, Value firstUnit) {
  beginNone();
  if (addsFirst(slab) && !access_.byClasses()) firstUnit_ = firstUnit;
  for (auto sweep : slab.sweeps()) {
    firstOf_[sweep] = tensors_.size();
    for (TensorOp t : f_.tensors(sweep.getPartials()))
      if (t.hasAxis(f_.featuresLast() ? Axis::Feature : Axis::Row)) tensors_.push_back(t);
  }
  if (k_.s.tile == 0) return;
  for (size_t p = 0; p < tensors_.size(); ++p) {
    sums_.append(k_.tileCount(), l_.zero(k_.vectorType()));
    sums_.append(access_.ends(), l_.zero(f_.statistics()));
  }
}

void PartialSums::add(size_t partial, const Position& position, Value v) {
  if (position.slot) return shared_.setSum(partial, position, l_.addf(shared_.sum(partial, position), v));
  Value& running = sums_[partial * (k_.tileCount() + access_.ends()) + position.index];
  running = l_.addf(running, v);
}

//===-- To memory -------------------------------------------------------------------===//

/// Adds the accumulators to the task's partials, each feature by one thread, and clears them. Where `again`
/// is false nothing was added before.
void PartialSums::flush(Value again) {
  if (!inRegisters()) return;
  if (access_.byClasses()) return flushElements();
  flushShared(again);
  flushAccesses(again);
}

Value PartialSums::addressOf(TensorOp t, const Position& position) {
  return f_.address(t, access_.feature(position));
}

void PartialSums::addTo(TensorOp t, Value address, int64_t lanes, Value sum) {
  f_.store(t, address, l_.addf(f_.load(t, address, lanes, {}), sum), {});
}

void PartialSums::flushAccesses(Value again) {
  const Place& place = access_.run().place;
  struct Part {
    TensorOp tensor;
    Position position;
    Value condition;
  };
  SmallVector<Part> parts;
  for (TensorOp t : tensors_)
    for (int64_t k = 0; k < k_.tileCount(); ++k) {
      const Position position = access_.ofTile(k);
      parts.push_back(
          {t, position, place.units > 1 ? l_.both(k_.isZero(place.unit), position.inside) : position.inside});
    }
  // All loads come before the first store: LLVM must not move one above a store, so each would wait for a
  // trip to memory of its own.
  const auto withMemory = [&] {
    Values added;
    for (auto [part, sum] : llvm::zip(parts, sums_)) {
      const auto load = [&, &part = part] {
        return Values{f_.load(part.tensor, addressOf(part.tensor, part.position), k_.lanes(), {})};
      };
      added.push_back(l_.addf(k_.loadWhere(part.condition, k_.vectorType(), load)[0], sum));
    }
    return added;
  };
  sums_ = again ? l_.when(again, sums_, withMemory) : withMemory();
  for (auto [part, sum] : llvm::zip(parts, sums_)) {
    Value memory;
    if (place.units > 1) {
      memory = tree_.nextBuffer();
      tree_.store(memory, sum);
      k_.barrier();
    }
    k_.storeWhere(part.condition, [&, &part = part, &sum = sum] {
      f_.store(part.tensor, addressOf(part.tensor, part.position), memory ? tree_.total(memory, place) : sum,
               {});
    });
    sum = l_.zero(k_.vectorType());
  }
  if (place.units > 1) k_.barrier();
}

void PartialSums::flushShared(Value again) {
  if (!shared_.hasSums()) return;
  shared_.forEach(1, {}, {}, [&](ArrayRef<Position> positions, Values&) {
    const Position& at = positions[0];
    k_.storeWhere(at.inside, [&] {
      SmallVector<Value> addresses;
      for (TensorOp t : tensors_) addresses.push_back(addressOf(t, at));
      const Values before = k_.loadWhere(again, SmallVector<Type>(tensors_.size(), k_.vectorType()), [&] {
        Values loaded;
        for (auto [t, address] : llvm::zip(tensors_, addresses))
          loaded.push_back(f_.load(t, address, k_.lanes(), {}));
        return loaded;
      });
      for (auto [p, t] : llvm::enumerate(tensors_)) {
        f_.store(t, addresses[p], l_.addf(before[p], shared_.sum(p, at)), {});
        shared_.setSum(p, at, l_.zero(k_.vectorType()));
      }
    });
  });
}

/// Does what flushAccesses does for congruent rows. The elements of neighbouring threads are `vector` apart,
/// so sums are transposed in shared memory, and neighbouring threads add neighbouring features. Padded
/// columns avoid bank conflicts.
void PartialSums::flushElements() {
  const Place& place = access_.run().place;
  const int64_t vector = k_.s.vector, threads = k_.threads(), pitch = threads + transposePitch(vector);
  const int64_t buffers = transposeBuffers(k_.s);
  auto nextBuffer = [&] {
    if (buffers == 1) k_.barrier();  // the old values have been read
    return tree_.nextBuffer(vector * pitch, buffers);
  };
  auto total = [&](Value memory, Value at) {
    SmallVector<Value> parts;
    for (int64_t u = 0; u < place.units; ++u)
      parts.push_back(memref::LoadOp::create(l_.b, l_.loc, memory, l_.add(at, l_.index(u * place.span))));
    return l_.tree(parts);
  };
  const int64_t positions = k_.tileCount() + access_.ends(), ends = access_.ends();
  const Value head = access_.head(), vectors = access_.count();
  const Value firstLane = l_.sub(place.lane, place.spanLane);  // of this block
  for (auto [p, t] : llvm::enumerate(tensors_))
    for (int64_t k = 0; k < k_.tileCount(); ++k) {
      Value memory = nextBuffer();
      for (int64_t e = 0; e < vector; ++e)
        memref::StoreOp::create(l_.b, l_.loc, k_.laneOf(sums_[p * positions + k], e), memory,
                                l_.add(k_.thread, l_.index(e * pitch)));
      k_.barrier();
      const int64_t window = place.span * vector;
      for (int64_t from = 0; from < window; from += threads) {
        Value w = l_.add(k_.thread, l_.index(from));
        Value lane = l_.div(w, l_.index(vector)), e = l_.rem(w, l_.index(vector));
        Value access = l_.add(l_.add(firstLane, lane), l_.index(k * place.team));
        Value inside = l_.less(access, vectors);
        if (from + threads > window) inside = l_.both(inside, l_.less(w, l_.index(window)));
        k_.storeWhere(inside, [&, t = t] {
          Value offset = l_.add(l_.add(head, l_.mul(access, l_.index(vector))), e);
          Value sum = total(memory, l_.add(l_.mul(e, l_.index(pitch)), lane));
          addTo(t, addressOf(t, {.offset = offset}), 0, sum);
        });
      }
    }
  // The ends of all partials, as many at once as the memory has columns.
  SmallVector<std::pair<size_t, int64_t>> all;
  for (size_t p = 0; p < tensors_.size(); ++p)
    for (int64_t i = 0; i < ends; ++i) all.emplace_back(p, i);
  for (size_t first = 0; first < all.size(); first += vector) {
    auto some = ArrayRef(all).slice(first, std::min<size_t>(vector, all.size() - first));
    Value memory = place.units > 1 ? nextBuffer() : Value();
    auto sumOf = [&](auto end) { return sums_[end.first * positions + k_.tileCount() + end.second]; };
    if (memory) {
      for (auto [column, end] : llvm::enumerate(some))
        memref::StoreOp::create(l_.b, l_.loc, sumOf(end), memory,
                                l_.add(k_.thread, l_.index(int64_t(column) * pitch)));
      k_.barrier();
    }
    for (auto [column, end] : llvm::enumerate(some)) {
      Position position = access_.end(end.second);
      k_.storeWhere(l_.both(memory ? k_.isZero(place.unit) : Value(), position.inside),
                    [&, end = end, column = int64_t(column)] {
                      Value sum = memory ? total(memory, l_.add(place.spanLane, l_.index(column * pitch)))
                                         : sumOf(end);
                      addTo(tensors_[end.first], addressOf(tensors_[end.first], position), 0, sum);
                    });
    }
  }
  k_.barrier();
  for (Value& sum : sums_) sum = l_.zero(sum.getType());
}

//===-- Steps -----------------------------------------------------------------------===//

Values PartialSums::forEachStep(Units units, int64_t stride, Values zeros,
                                llvm::function_ref<void(Value, Values&)> step, Combiners combiners,
                                Values* carriedToo) {
  size_t count = zeros.size(), sums = sums_.size();
  Values none, &ahead = carriedToo ? *carriedToo : none;
  auto inner = [&](Value from, Value to) {
    Values carried(zeros);
    carried.append(sums_);
    carried.append(ahead);
    Values out = l_.forEach(from, to, stride, carried, [&](Value i, ValueRange running) {
      Values next(running.take_front(count));
      sums_.assign(running.begin() + count, running.begin() + count + sums);
      ahead.assign(running.begin() + count + sums, running.end());
      step(i, next);
      next.append(sums_);
      next.append(ahead);
      return next;
    });
    sums_.assign(out.begin() + count, out.begin() + count + sums);
    ahead.assign(out.begin() + count + sums, out.end());
    out.truncate(count);
    return out;
  };
  if (zeros.empty() && sums_.empty()) return inner(units.begin, units.end);
  int64_t block = (sums_.empty() ? kLongestChain : kFlushPartialSteps) * stride;
  Values cleared = sums_, carried = zeros;
  carried.append(ahead);
  // Carried from step to step, it takes fewer registers than a comparison with the first unit.
  const bool asks = firstUnit_ && !sums_.empty();
  if (asks) carried.push_back(l_.less(firstUnit_, units.begin));
  Values total = l_.forEach(
      units.begin, units.end, block, carried,
      [&](Value first, ValueRange running) {
        sums_ = cleared;
        ahead = Values(running.drop_front(count).drop_back(asks));
        const Value next = l_.add(first, l_.index(block));
        Values own = inner(first, l_.min(next, units.end));
        if (beforeTheLast_ && inRegisters() && !access_.byClasses())
          l_.when(l_.isFalse(l_.less(next, units.end)), {}, [&] {
            beforeTheLast_();
            return Values();
          });
        flush(asks ? Value(running.back()) : Value());
        own = l_.combineEach(running, own, combiners);
        own.append(ahead);
        if (asks) own.push_back(arith::ConstantIntOp::create(l_.b, l_.loc, 1, 1));
        return own;
      },
      access_.byClasses() ? Loops::Invariants::Inside : Loops::Invariants::Before);
  sums_ = cleared;
  total.truncate(count);
  return total;
}

}  // namespace normc::codegen::cuda
