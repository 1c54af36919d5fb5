#include "codegen/lower/SlabLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/abi/MemoryUnits.h"

using namespace mlir;

namespace normc::codegen {

Value SlabLowering::runWidth() {
  if (blockWidth_) return blockWidth_;
  if (!f_.featuresLast()) return f_.rows();
  if (slab_.isSplit()) return l_.sub(end_, begin_);
  if (slab_.isPer(Axis::PreGroup)) return f_.groupWidth(Axis::PreGroup);
  return slab_.isPer(Axis::Group) ? f_.groupWidth(Axis::Group) : f_.features();
}

Value SlabLowering::headUnit(Value n, int64_t head) {
  const int64_t strata = head * headRounds_;
  int64_t bytes = 0;
  for (TensorOp t : f_.kernel().getOps<TensorOp>())
    if (t.isXSized() && !bytes) bytes = elementBytes(t.getType());
  Value one = l_.index(1);
  Value most = l_.div(l_.index(kHeadBytes), l_.max(l_.mul(f_.features(), l_.index(bytes)), one));
  Value apart = l_.max(l_.div(l_.min(l_.sub(end_, begin_), most), l_.index(strata)), one);
  Value i = l_.sub(n, begin_), all = l_.mul(apart, l_.index(strata));
  // With two rounds every second stratum, then the others; fewer rows than strata in their order.
  auto stratum = [&](Value i) {
    if (headRounds_ == 1) return i;
    Value turned =
        l_.add(l_.rem(l_.mul(i, l_.index(headRounds_)), l_.index(strata)), l_.div(i, l_.index(head)));
    return l_.select(l_.less(l_.sub(end_, begin_), l_.index(strata)), i, turned);
  };
  if (!f_.kernel().hasMask()) return l_.add(begin_, l_.stratifiedOffset(all, stratum(i), strata));
  // Valid rows may not be among the first samples. Then the rows after each sample follow, up to the end of
  // its stratum.
  Value part = stratum(l_.rem(i, l_.index(strata))), first = l_.mul(part, apart);
  Value within = l_.rem(
      l_.add(l_.sub(l_.stratifiedOffset(all, part, strata), first), l_.div(i, l_.index(strata))), apart);
  return l_.add(begin_, l_.select(l_.less(i, all), l_.add(first, within), i));
}

Value SlabLowering::headLimit(int64_t head) {
  if (headRounds_ == 1) return l_.index(head);
  return l_.select(l_.less(l_.sub(end_, begin_), f_.units()), l_.index(head), l_.index(head * headRounds_));
}

Value SlabLowering::unitsOfSegment(Axis axis) {
  return axis == Axis::Row       ? f_.rows()
         : axis == Axis::Feature ? f_.features()
                                 : l_.index(f_.groups(Axis::Group));
}

Coordinates SlabLowering::unitCoordinates(Value n) {
  const Value unit = unitAt(slab_ && slab_.getHead() ? headUnit(n, *slab_.getHead()) : n);
  Coordinates at{.segment = l_.index(0), .chunk = f_.task()};
  // The slabs of a split phase, or of channels, are not the units of the phase.
  const bool own = slab_ && (slab_.isSplit() || slab_.isOfRows());
  const ArrayRef<Axis> axes = own ? slab_.getPer() : f_.phase().getUnits();
  if (axes.size() == 2) {
    const Value units = unitsOfSegment(axes[1]);
    // nothing is divided by 0
    const Value extent = readsAhead() ? l_.max(units, l_.index(1)) : units;
    bool one = f_.kernel().getSegmentsAreOne();
    if (!one) at.segment = segment_ ? segment_ : l_.div(unit, extent);
    Value second = one ? unit : segment_ ? l_.sub(unit, l_.mul(segment_, extent)) : l_.rem(unit, extent);
    (axes[1] == Axis::Row ? at.row : axes[1] == Axis::Feature ? at.feature : at.group) = second;
  } else if (!axes.empty()) {
    (axes[0] == Axis::Segment ? at.segment : at.feature) = unit;
  }
  return at;
}

std::pair<Value, Value> SlabLowering::segmentAndRow(Value n) {
  // without rows there is no unit, and nothing is divided by 0
  Value rows = l_.max(f_.rows(), l_.index(1));
  return {l_.div(n, rows), l_.rem(n, rows)};
}

Value SlabLowering::headEnd(Value begin, Value end, int64_t head) {
  Value limit = headLimit(head);
  if (!f_.kernel().hasMask()) return l_.min(l_.add(begin, limit), end);
  // Goes through the rows in head order until `head` valid ones were found.
  TensorOp mask = f_.tensor("mask");
  OpBuilder& b = l_.b;
  Value zero = l_.index(0), one = l_.index(1);
  auto loop = scf::WhileOp::create(
      b, l_.loc, TypeRange{b.getIndexType(), b.getIndexType()}, ValueRange{begin, zero},
      [&](OpBuilder& inner, Location loc, ValueRange v) {
        Value more = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, v[0], end);
        Value few = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, v[1], limit);
        scf::ConditionOp::create(inner, loc, arith::AndIOp::create(inner, loc, more, few), v);
      },
      [&](OpBuilder& inner, Location loc, ValueRange v) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(inner.getInsertionBlock());
        Value valid = f_.load(mask, f_.address(mask, unitCoordinates(v[0])), 0, {});
        Value found = l_.add(v[1], l_.select(valid, one, zero));
        scf::YieldOp::create(b, loc, ValueRange{l_.add(v[0], one), found});
      });
  return loop.getResult(0);
}

Value SlabLowering::sumOfRows(ArrayRef<Value> rows) {
  const bool robust =
      slab_.getHead() && int64_t(rows.size()) == int64_t(*slab_.getHead()) && !f_.kernel().hasMask();
  return robust ? l_.scale(l_.middle(rows), double(rows.size())) : l_.tree(rows);
}

Values SlabLowering::regionCode(Block& body, IRMapping& values,
                                llvm::function_ref<bool(Operation&)> isNeeded) {
  for (Operation& op : body.without_terminator())
    if (isNeeded(op)) clone(op, values);
  Values yielded;
  for (Value v : cast<YieldOp>(body.getTerminator()).getValues()) yielded.push_back(mapped(v, values));
  return yielded;
}

Operation* SlabLowering::clone(Operation& op, IRMapping& values) {
  int64_t lanes = 0;
  for (Value operand : op.getOperands())
    if (auto vector = dyn_cast<VectorType>(mapped(operand, values).getType())) lanes = vector.getDimSize(0);
  Operation* copy = l_.b.clone(op, values);
  if (!lanes) return copy;
  OpBuilder::InsertionGuard guard(l_.b);
  l_.b.setInsertionPoint(copy);
  bool select = isa<arith::SelectOp>(op);
  for (OpOperand& operand : copy->getOpOperands())
    if (!(select && operand.getOperandNumber() == 0)) operand.set(l_.broadcast(operand.get(), lanes));
  // The condition of a select may stay a scalar: it selects whole vectors.
  for (OpResult result : copy->getResults()) result.setType(VectorType::get({lanes}, result.getType()));
  return copy;
}

SlabLowering::SweepParts SlabLowering::partsOf(SweepOp op) {
  SweepParts s{.op = op};
  s.reads = f_.tensors(op.getReads());
  s.writes = f_.tensors(op.getWrites());
  s.partials = f_.tensors(op.getPartials());
  s.firstMate = s.reads.size();
  if (auto mates = op.getMates()) llvm::append_range(s.reads, f_.tensors(*mates));
  // The axis of the innermost loop, and the axis along which replicas differ.
  bool column = kind_ == Kind::Column && !isAcrossChannels();
  const Axis contiguous = f_.kernel().contiguousAxis();
  const Axis other = contiguous == Axis::Feature ? Axis::Row : Axis::Feature;
  const Axis inner = column ? Axis::Row : contiguous, across = column ? Axis::Feature : other;
  for (TensorOp t : s.reads) {
    // Hoisted: the inner axis does not index it. Shared: no axis that differs between replicas does.
    const bool ofOneSegment = !t.hasAxis(Axis::Segment) || slab_.isPer(Axis::Segment);
    s.hoisted.push_back(!t.follows(inner) && !(column && !ofOneSegment));
    // Replicas of a step across channels are features of one group in one segment.
    s.shared.push_back(!t.hasAxis(across) &&
                       (isAcrossChannels() || (!t.hasAxis(Axis::Segment) && !t.hasAxis(Axis::Group))));
  }
  for (size_t k = 0; k < op.getSums().size(); ++k) s.combiners.push_back(op.combinerOf(k));
  for (TensorOp t : s.partials) {
    s.runPartial.push_back(!t.hasAxis(contiguous));
    if (s.runPartial.back()) s.combiners.push_back(Combiner::Add);
  }
  s.slots = s.combiners.size();
  return s;
}

SmallVector<Combiner> SlabLowering::SweepParts::combinersOf(size_t replicas, size_t unroll) const {
  SmallVector<Combiner> all;
  for (size_t r = 0; r < replicas; ++r)
    for (Combiner combiner : combiners) all.append(unroll, combiner);
  return all;
}

int64_t SlabLowering::SweepParts::rowsTogether(int64_t rows) const {
  auto is16Bit = [](TensorOp t) { return t.isXSized() && t.getType().getIntOrFloatBitWidth() == 16; };
  auto isDifference = [](Value term) {
    if (auto select = term.getDefiningOp<arith::SelectOp>()) term = select.getTrueValue();
    return bool(term.getDefiningOp<arith::SubFOp>());
  };
  auto terms = SweepOp(op).getBody().front().getTerminator()->getOperands().drop_front(writes.size());
  return rows < 4 && llvm::any_of(reads, is16Bit) && llvm::any_of(terms, isDifference) ? 2 * rows : rows;
}

Value SlabLowering::loadRead(const SweepParts& s, size_t i, const Coordinates& at, int64_t lanes,
                             Value mask) {
  TensorOp t = s.reads[i];
  const bool mate = i >= s.firstMate;
  if (!mate && !t.hasAxis(Axis::Pair)) return f_.load(t, f_.address(t, at), lanes, mask);
  PairLowering pairs(l_, f_, side_);
  return mate ? pairs.mates(t, at, lanes, mask) : pairs.ofPairs(t, at, lanes, mask);
}

void SlabLowering::hoist(const SweepParts& s, Replica& replica) {
  SweepOp op = s.op;
  for (auto [i, t] : llvm::enumerate(s.reads)) {
    if (!s.hoisted[i]) continue;
    TensorOp tensor = t;
    int64_t lanes = lanesOf(tensor);
    Value v = f_.load(tensor, f_.address(tensor, replica.at), lanes, lanes ? laneMask_ : Value());
    replica.values.map(op.getBody().getArgument(i), v);
  }
}

}  // namespace normc::codegen
