// Shift estimates: from a run whose threads hold it, and from the first rows of a column.
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "llvm/ADT/bit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// The least elements of a run that the shift estimate samples, because a single one may be an outlier.
static constexpr int64_t kLeastProbed = 4;

Value TeamLowering::probe(ProbeOp op, Replica& replica) {
  if (kind_ == Kind::Run) return probeRun(op, replica);
  auto isHeld = [&](StringRef name) {
    TensorOp t = f_.tensor(name);
    return !t.isXSized() || llvm::is_contained(columnRows_.tensors, t);
  };
  if (llvm::all_of(op.tensors(), isHeld) && !f_.kernel().hasMask() &&
      k_.threads() / run_.place.span >= probedRows_)
    return probeHeld(op, replica);
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

/// Returns the shift estimate of a run: of warps that share one, see probeOfWarp. Else the mean of the first
/// access of a power of two of threads and of one in the middle: if threads hold the run, they read these
/// accesses anyway.
Value TeamLowering::probeRun(ProbeOp op, Replica& replica) {
  auto mean = [&](int64_t threads, const Position& begin, const Position& middle) {
    int64_t lanes = k_.lanes();
    auto at = [&](const Position& position) {
      return sampled(op, [&](TensorOp t) {
        Value here = held_.find(t, replica.index, position.index);
        if (here && position.index >= 0) return here;
        return access_->load(l_.both(replica.active, position.inside), t,
                             access_->along(replica.at, position), lanesBeside(t, lanes), replica.index);
      });
    };
    Value asked = l_.addf(at(begin), at(middle));
    SmallVector<Value> sum{lanes ? horizontal(asked) : asked};
    if (threads < run_.place.team)
      sum[0] = l_.select(l_.less(run_.place.lane, l_.index(threads)), sum[0], l_.zero(sum[0].getType()));
    tree_.overRun(sum, run_.place);
    return l_.scale(sum[0], 0.5 / double(threads * s_.vector));
  };
  if (probesByWarp()) return probeOfWarp(op, replica);
  Value count = access_->leastCount();
  if (auto known = Loops::constant(count)) {
    int64_t threads = int64_t(llvm::bit_floor(uint64_t(std::min(*known, run_.place.team))));
    if (*known == 0 || threads * s_.vector < kLeastProbed) {
      auto some = [&] { return Values{SlabLowering::probe(op, replica)}; };
      return k_.loadWhere(replica.active, f_.statistics(), some)[0];
    }
    int64_t half = *known / 2 / run_.place.team;
    if (s_.shared)
      half =
          std::min(half, k_.tileCount() - 1);  // the rest is being copied to shared memory, and is read once
    return mean(threads, access_->ofTile(0, replica.index),
                half < k_.tileCount() ? access_->ofTile(half, replica.index)
                                      : access_->at(l_.add(run_.place.lane, l_.index(half * run_.place.team)),
                                                    true, replica.index));
  }
  int64_t threads = int64_t(llvm::bit_floor(uint64_t(run_.place.team)));
  const bool ever = threads * s_.vector >= 16;
  Value isShort = ever ? l_.less(count, l_.index(run_.place.team)) : Value(),
        condition = l_.both(replica.active, isShort);
  auto firstOnes = [&] { return Values{SlabLowering::probe(op, replica)}; };
  Value few = k_.loadWhere(condition, f_.statistics(), firstOnes)[0];
  if (!ever) return few;
  Value value;
  k_.uncounted([&] {  // short runs do not pass its barriers
    value = l_.when(l_.less(l_.index(run_.place.team - 1), count), few, [&] {
      Value middle = l_.mul(l_.div(count, l_.index(2 * run_.place.team)), l_.index(run_.place.team));
      return Values{mean(threads, access_->at(run_.place.lane, true, replica.index),
                         access_->at(l_.add(run_.place.lane, middle), true, replica.index))};
    })[0];
  });
  return value;
}

/// True if each warp of the blocks that share a run estimates its shift alone, all from the same elements:
/// that takes two loads of its own, and saves a meeting of the blocks. An exchange in one block is faster
/// than the loads.
bool TeamLowering::probesByWarp() const {
  return k_.taskBlocks() > 1 && warpsProbe(traitsOf(f_.kernel()), s_);
}

/// Returns the mean of eight neighbours in the middle of each eighth of the run: the ends of a row may be
/// padded, and data may drift along it.
Value TeamLowering::probeOfWarp(ProbeOp op, Replica& replica) {
  constexpr int64_t parts = 8, neighbours = 8, loads = parts * neighbours / kWarp;
  const int64_t part = *Loops::constant(run_.width) / parts;
  Value lane = l_.rem(k_.thread, l_.index(kWarp));
  Value first = l_.mul(l_.div(lane, l_.index(neighbours)), l_.index(loads * part));
  Value place = l_.add(runBegin_, l_.add(first, l_.rem(lane, l_.index(neighbours))));
  Value asked = k_.loadWhere(replica.active, f_.statistics(), [&] {
    Values samples;
    for (int64_t i = 0; i < loads; ++i) {
      Coordinates at = replica.at;
      (f_.featuresLast() ? at.feature : at.row) = l_.add(place, l_.index(i * part + (part - neighbours) / 2));
      samples.push_back(sampledAt(op, at, 0));
    }
    return Values{l_.tree(samples)};
  })[0];
  SmallVector<Value> sum{asked};
  tree_.overTeam(sum, kWarp);
  return l_.scale(sum[0], 1.0 / double(parts * neighbours));
}

/// Returns the shift estimate of SlabLowering::probe, for which each of eight teams of a block reads one row,
/// and all exchange them. They read rows again, from a cache, that some team may hold, because which team
/// that is depends on the sizes, and registers cannot be indexed.
Value TeamLowering::probeHeld(ProbeOp op, const Replica& column) {
  Value memory = tree_.nextBuffer(), team = l_.div(k_.thread, l_.index(run_.place.span));
  const int64_t lanes = k_.lanes();
  Value asked =
      l_.both(l_.both(l_.less(team, l_.index(probedRows_)), l_.less(l_.index(0), rowCount())), inside_);
  Value mine = l_.when(asked, l_.zero(k_.vectorType()), [&] {
    return Values{sampledAt(op, probedPlace(column.at, team, probedRows_), lanes)};
  })[0];
  tree_.store(memory, mine);
  if (k_.gridded())
    k_.barrier();  // the grid barrier of the sums comes before the first store
  else
    tree_.taskBarrier();
  Values rows;
  for (int64_t i = 0; i < probedRows_; ++i) rows.push_back(tree_.load(memory, run_.place, i));
  return asStored(op, l_.middle(rows));
}

/// Sample i is the first valid row from its place on, among as many rows as are valid, counted from the first
/// valid row. So a row is always found, and a batch that ends in padding is sampled where its rows are. A
/// search of all ranks would wait for one load after the other.
Values TeamLowering::searchValid(Value segment, Value count) {
  TensorOp mask = f_.tensor("mask");
  OpBuilder& b = l_.b;
  const Value none = l_.index(0), one = l_.index(1), begin = slab_.isOfRows() ? begin_ : none;
  const Value last = l_.sub(slab_.isOfRows() ? end_
                            : segment        ? f_.rows()
                                             : l_.mul(f_.segments(), f_.rows()),
                            one);
  auto place = [&](Value unit) {
    return segment                           ? std::pair(segment, unit)
           : f_.kernel().getSegmentsAreOne() ? std::pair(none, unit)
                                             : segmentAndRow(unit);
  };
  auto firstValid = [&](Value from) -> Value {
    auto search = scf::WhileOp::create(
        b, l_.loc, TypeRange{b.getIndexType()}, ValueRange{from},
        [&](OpBuilder& inner, mlir::Location loc, ValueRange unit) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(inner.getInsertionBlock());
          auto [in, row] = place(unit[0]);
          Value padded = l_.isFalse(f_.load(mask, f_.address(mask, {.segment = in, .row = row}), 0, {}));
          scf::ConditionOp::create(b, loc, arith::AndIOp::create(b, loc, padded, l_.less(unit[0], last)),
                                   unit);
        },
        [&](OpBuilder& inner, mlir::Location loc, ValueRange unit) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToEnd(inner.getInsertionBlock());
          scf::YieldOp::create(b, loc, ValueRange{l_.add(unit[0], one)});
        });
    return search.getResult(0);
  };
  Values places;
  const Value first = firstValid(begin);
  for (int64_t i = 0; i < probedRows_; ++i) {
    auto [in, row] = place(firstValid(l_.add(first, l_.stratifiedOffset(count, l_.index(i), probedRows_))));
    places.append({in, row});
  }
  return places;
}

}  // namespace normc::codegen::cuda
