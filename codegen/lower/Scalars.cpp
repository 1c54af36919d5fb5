// The scalar code between sweeps: loads and stores of statistics, folds over chunks and windows, counts of
// rows.
#include "codegen/lower/SlabLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

void SlabLowering::scalarOp(Operation& op, Replica& replica) {
  IRMapping& values = replica.values;
  // Vectors of features only: every feature is computed this way. The last row of a task may be computed
  // alone, by a scalar.
  auto isOfFeatures = [&](Value v) {
    return lanes_ && slowRoots_ && !isAcrossChannels() && isa<VectorType>(mapped(v, values).getType());
  };
  auto place = [&](Value window) {
    Coordinates at = replica.at;
    if (window) at.window = mapped(window, values);
    return at;
  };
  if (auto load = dyn_cast<LoadOp>(op)) {
    TensorOp t = f_.tensor(load.getTensor());
    beforeRead(t);
    int64_t lanes = lanesOf(t);
    values.map(load.getValue(),
               f_.load(t, f_.address(t, place(load.getWindow())), lanes, lanes ? laneMask_ : Value()));
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    TensorOp t = f_.tensor(store.getTensor());
    int64_t lanes = lanesOf(t);
    Value v = l_.broadcast(mapped(store.getValue(), values), lanes);
    if (kept(replica, t, v)) return;
    Coordinates at = place(store.getWindow());
    Value mask = lanes ? laneMask_ : Value();
    once(replica, t, [=, this] { f_.store(t, f_.address(t, at), v, mask); });
  } else if (auto add = dyn_cast<AccumulateOp>(op)) {
    TensorOp t = f_.tensor(add.getTensor());
    int64_t lanes = lanesOf(t);
    Value v = l_.broadcast(mapped(add.getValue(), values), lanes);
    Value mask = lanes ? laneMask_ : Value();
    once(replica, t, [=, this, at = replica.at] {
      Value address = f_.address(t, at);
      f_.store(t, address, l_.addf(f_.load(t, address, lanes, mask), v), mask);
    });
  } else if (auto probeOp = dyn_cast<ProbeOp>(op)) {
    values.map(probeOp.getValue(), probe(probeOp, replica));
  } else if (auto countOp = dyn_cast<CountOp>(op)) {
    values.map(countOp.getValue(), count(countOp, &replica));
  } else if (auto width = dyn_cast<WidthOp>(op)) {
    Value features = width.getGroups() == WidthOf::Task     ? l_.sub(end_, begin_)
                     : width.getGroups() == WidthOf::Groups ? f_.groupWidth(Axis::Group)
                                                            : f_.groupWidth(Axis::PreGroup);
    Value n = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), features);
    values.map(width.getValue(), arith::SIToFPOp::create(l_.b, l_.loc, f_.statistics(), n));
  } else if (auto scalar = dyn_cast<ScalarOp>(op)) {
    values.map(scalar.getValue(), f_.scalar(scalar.getName()));
  } else if (auto foldOp = dyn_cast<FoldOp>(op)) {
    fold(foldOp, replica);
  } else if (auto root = dyn_cast<math::RsqrtOp>(op); root && isOfFeatures(root.getOperand())) {
    cast<math::RsqrtOp>(clone(op, values)).setFastmath(root.getFastmath() | arith::FastMathFlags::afn);
  } else if (!isa<YieldOp>(op)) {
    clone(op, values);
  }
}

Values SlabLowering::foldElements(FoldOp op, const Replica& replica, Value position) {
  Coordinates at = replica.at;
  (op.getAxis() == Axis::Chunk     ? at.chunk
   : op.getAxis() == Axis::Partial ? at.partial
                                   : at.window) = position;
  Values elements;
  for (TensorOp t : f_.tensors(op.getReads())) {
    int64_t lanes = lanesOf(t);
    elements.push_back(f_.load(t, f_.address(t, at), lanes, lanes ? laneMask_ : Value()));
  }
  return elements;
}

Values SlabLowering::foldStep(FoldOp op, Replica& replica, Value position, ValueRange running,
                              ValueRange elements) {
  Block& body = op.getBody().front();
  replica.values.map(body.getArgument(0), position);
  for (auto [i, v] : llvm::enumerate(running)) replica.values.map(body.getArgument(1 + i), v);
  for (auto [i, v] : llvm::enumerate(elements))
    replica.values.map(body.getArgument(1 + running.size() + i), v);
  for (Operation& inner : body.without_terminator()) {
    auto widening = dyn_cast<arith::ExtFOp>(inner);
    Value narrow = widening ? mapped(widening.getIn(), replica.values) : Value();
    if (narrow && narrow.getType() == widening.getType())
      replica.values.map(widening.getResult(), narrow);  // a running value is wide
    else
      scalarOp(inner, replica);
  }
  Values next;
  for (Value v : cast<YieldOp>(body.getTerminator()).getValues())
    next.push_back(l_.broadcast(mapped(v, replica.values), lanes_));
  return next;
}

void SlabLowering::fold(FoldOp op, Replica& replica) {
  const auto finish = [&](ValueRange values) {
    for (auto [result, v] : llvm::zip(op.getValues(), values)) replica.values.map(result, v);
  };
  if (const Values known = folded(op); !known.empty()) return finish(known);
  const bool chunks = op.getAxis() == Axis::Chunk, partials = op.getAxis() == Axis::Partial;
  Value extent = op.getOfSegment() ? f_.chunksOfSegment(*op.getChunkOf())
                 : chunks          ? f_.chunks(*op.getChunkOf())
                 : partials        ? f_.partials(f_.tensors(op.getReads()).front())
                                   : l_.index(*op.getExtent());
  for (TensorOp t : f_.tensors(op.getReads())) beforeRead(t);
  bool stores = !op.getBody().front().getOps<StoreOp>().empty();
  if (stores) beginFold();
  Values init;
  for (Value v : op.getInit()) init.push_back(l_.broadcast(mapped(v, replica.values), lanes_));

  auto positions = [&](Value begin, Value end, int64_t batch, ValueRange from) {
    return l_.forEach(begin, end, batch, from, [&](Value position, ValueRange running) {
      SmallVector<Values> loaded;  // all of a batch before the first is used: they wait together
      for (int64_t i = 0; i < batch; ++i)
        loaded.push_back(foldElements(op, replica, l_.add(position, l_.index(i))));
      Values next(running);
      for (int64_t i = 0; i < batch; ++i) {
        next = foldStep(op, replica, l_.add(position, l_.index(i)), next, loaded[i]);
        if (stores) endFoldStep();
      }
      return next;
    });
  };
  int64_t batch = chunks ? foldBatch_ : 1;
  Value begin = op.getOfSegment() ? l_.mul(replica.at.segment, extent) : l_.index(0);
  Value whole = l_.roundDown(extent, batch);
  auto from = [&](Value n) { return op.getOfSegment() ? l_.add(begin, n) : n; };
  Values last = positions(begin, from(whole), batch, init);
  if (batch > 1) last = positions(from(whole), from(extent), 1, last);
  finish(last);
}

//===-- Counting rows -------------------------------------------------------------===//

Value SlabLowering::countValid(Value begin, Value end, llvm::function_ref<Coordinates(Value)> place) {
  TensorOp mask = f_.tensor("mask");
  return l_.forEach(begin, end, 1, ValueRange{l_.index(0)}, [&](Value i, ValueRange sum) {
    Value valid = f_.load(mask, f_.address(mask, place(i)), 0, {});
    return Values{l_.add(sum[0], l_.select(valid, l_.index(1), l_.index(0)))};
  })[0];
}

Value SlabLowering::rowsOf(CountScope scope, Value segment) {
  const Value zero = l_.index(0);
  if (!f_.kernel().hasMask() || scope == CountScope::Rows) {
    if (scope == CountScope::Slab) return f_.rows();
    return scope == CountScope::Task ? l_.sub(end_, begin_) : l_.mul(f_.segments(), f_.rows());
  }
  if (scope != CountScope::Slab) segment = {};
  // A count may be used again if it was emitted in an enclosing region.
  for (ValidRows& known : validRows_)
    if (known.scope == scope && known.segment == segment &&
        known.rows.getParentRegion()->isAncestor(l_.b.getInsertionBlock()->getParent()))
      return known.rows;
  Value n;
  if (scope == CountScope::All) {
    n = countValid(zero, l_.mul(f_.segments(), f_.rows()), [&](Value i) {
      return f_.kernel().getSegmentsAreOne()
                 ? Coordinates{.segment = zero, .row = i}
                 : Coordinates{.segment = l_.div(i, f_.rows()), .row = l_.rem(i, f_.rows())};
    });
  } else if (scope == CountScope::Slab) {
    n = countValid(zero, f_.rows(), [&](Value i) { return Coordinates{.segment = segment, .row = i}; });
  } else {
    n = countValid(begin_, end_, [&](Value i) { return unitCoordinates(i); });
  }
  validRows_.push_back({scope, segment, n});
  return n;
}

Value SlabLowering::count(CountOp op, Replica* replica) {
  if (Value known = counts_.lookup(countKey(op))) return known;
  Value n = rowsOf(op.getScope(), replica ? replica->at.segment : Value());
  if (op.getHead()) n = l_.min(n, headLimit(*op.getHead()));
  Value wide = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), n);
  return arith::SIToFPOp::create(l_.b, l_.loc, f_.statistics(), wide);
}

void SlabLowering::countRows() {
  f_.phase()->walk([&](CountOp op) {
    if (op.getScope() != CountScope::Slab && !counts_.contains(countKey(op)))
      counts_[countKey(op)] = count(op, nullptr);
  });
}

std::string SlabLowering::countKey(CountOp op) {
  return (stringifyCountScope(op.getScope()) + "/" + llvm::Twine(op.getHead().value_or(0))).str();
}

Value SlabLowering::horizontal(Value v, Combiner combiner) {
  if (combiner == Combiner::Max)
    return vector::ReductionOp::create(l_.b, l_.loc, vector::CombiningKind::MAXIMUMF, v);
  return vector::ReductionOp::create(l_.b, l_.loc, vector::CombiningKind::ADD, v,
                                     arith::FastMathFlags::reassoc);
}

}  // namespace normc::codegen
