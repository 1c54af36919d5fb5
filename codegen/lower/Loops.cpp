#include "codegen/lower/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "runtime/abi/StratifiedOffsets.h"
#include "runtime/abi/Sums.h"

using namespace mlir;

namespace normc::codegen {

Value Loops::index(int64_t n) { return arith::ConstantIndexOp::create(b, loc, n); }
std::optional<int64_t> Loops::constant(Value v) { return getConstantIntValue(v); }

Value Loops::add(Value x, Value y) {
  if (constant(x) == 0) return y;
  if (constant(y) == 0) return x;
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value Loops::sub(Value x, Value y) {
  auto cx = constant(x), cy = constant(y);
  if (cx && cy) return index(*cx - *cy);
  return cy == 0 ? x : b.createOrFold<arith::SubIOp>(loc, x, y);
}
Value Loops::mul(Value x, Value y) {
  auto cx = constant(x), cy = constant(y);
  if (cx && cy) return index(*cx * *cy);
  if (cx == 0 || cy == 0) return index(0);
  if (cx == 1) return y;
  return cy == 1 ? x : b.createOrFold<arith::MulIOp>(loc, x, y);
}
Value Loops::div(Value x, Value y) {
  auto cx = constant(x), cy = constant(y);
  if (cx && cy) return index(*cx / *cy);
  return cy == 1 ? x : b.createOrFold<arith::DivUIOp>(loc, x, y);
}
Value Loops::rem(Value x, Value y) {
  auto cx = constant(x), cy = constant(y);
  if (cx && cy) return index(*cx % *cy);
  return cy == 1 ? index(0) : b.createOrFold<arith::RemUIOp>(loc, x, y);
}
Value Loops::min(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(loc, x, y); }
Value Loops::max(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(loc, x, y); }
Value Loops::select(Value c, Value yes, Value no) { return b.createOrFold<arith::SelectOp>(loc, c, yes, no); }
Value Loops::less(Value x, Value y) {
  auto cx = constant(x), cy = constant(y);
  if (cx && cy) return arith::ConstantOp::create(b, loc, b.getBoolAttr(*cx < *cy));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}
Value Loops::isFalse(Value condition) {
  return b.createOrFold<arith::XOrIOp>(loc, condition,
                                       arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
}

Value Loops::both(Value x, Value y) {
  if (!x || !y) return x ? x : y;
  return arith::AndIOp::create(b, loc, x, y);
}
Value Loops::roundDown(Value n, int64_t step) {
  if (step == 1) return n;
  return sub(n, rem(n, index(step)));
}

Value Loops::stratifiedOffset(Value count, Value i, int64_t parts) {
  Value numerator;
  if (auto known = constant(i)) {
    numerator = index(offsetNumerator(*known, parts));
  } else {
    const int64_t share = kOffsetDenominator / parts;
    Value bent = rem(mul(mul(i, i), index(kOffsetJitter)), index(share / 2));
    numerator = add(add(mul(i, index(share)), index(share / 4)), bent);
  }
  return div(mul(count, numerator), index(kOffsetDenominator));
}

Values Loops::forEach(Value begin, Value end, int64_t step, ValueRange init,
                      llvm::function_ref<Values(Value, ValueRange)> body, Invariants invariants) {
  return forEach(begin, end, index(step), init, body, invariants);
}
Values Loops::forEach(Value begin, Value end, Value step, ValueRange init,
                      llvm::function_ref<Values(Value, ValueRange)> body, Invariants invariants) {
  auto first = constant(begin), last = constant(end), by = constant(step);
  if (first && last && *first >= *last) return Values(init);
  // One turn needs no loop.
  if (first && last && by && *first + *by >= *last) return body(begin, init);
  auto loop = scf::ForOp::create(b, loc, begin, end, step, init);
  // Loops are unrolled here, by the schedule; LLVM would spill.
  auto unroll = LLVM::LoopUnrollAttr::get(b.getContext(), b.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  LLVM::LoopLICMAttr licm;
  if (invariants == Invariants::Inside)
    licm = LLVM::LoopLICMAttr::get(b.getContext(), b.getBoolAttr(true), {});
  loop->setAttr("loop_annotation",
                LLVM::LoopAnnotationAttr::get(b.getContext(), {}, {}, {}, unroll, {}, licm, {}, {}, {}, {},
                                              {}, {}, {}, {}, ArrayRef<LLVM::AccessGroupAttr>()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty()) scf::YieldOp::create(b, loc, next);
  return Values(loop.getResults());
}
void Loops::forEach(Value begin, Value end, int64_t step, llvm::function_ref<void(Value)> body) {
  forEach(begin, end, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}
static Combiner combinerAt(Combiners combiners, size_t i) {
  return combiners.empty() ? Combiner::Add : combiners[i];
}

Values Loops::inLevels(Value begin, Value end, int64_t step, ValueRange from,
                       llvm::function_ref<Values(Value, Value, ValueRange)> some, std::optional<int64_t> most,
                       Combiners combiners) {
  const int64_t least = step * kLongestChain;
  if (auto size = constant(sub(end, begin))) most = size;
  const int64_t length = most.value_or(least * kLongestChain + 1);
  if (length <= least) return some(begin, end, from);
  int64_t largest = least;  // blocks of the last level but one
  while (largest * kLongestChain < length) largest *= kLongestChain;
  auto level = [&](auto& self, int64_t block, Value first, Value last, ValueRange sums) -> Values {
    if (block < least) return some(first, last, sums);
    return forEach(first, last, block, sums, [&](Value at, ValueRange running) {
      Values none;
      for (auto [i, v] : llvm::enumerate(running))
        none.push_back(identity(combinerAt(combiners, i), v.getType()));
      Values below = self(self, block / kLongestChain, at, min(add(at, index(block)), last), none);
      return combineEach(running, below, combiners);
    });
  };
  return level(level, largest, begin, end, from);
}
Values Loops::when(Value condition, ValueRange otherwise, llvm::function_ref<Values()> body) {
  if (auto known = constant(condition)) return *known ? body() : Values(otherwise);
  auto branch =
      scf::IfOp::create(b, loc, otherwise.getTypes(), condition, /*withElseRegion=*/!otherwise.empty());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Values results = body();
  if (otherwise.empty()) return {};
  scf::YieldOp::create(b, loc, results);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  return Values(branch.getResults());
}

Type withElement(Type like, Type element) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(vector.clone(element)) : element;
}

Value Loops::splat(Type type, TypedAttr element) {
  if (auto vector = dyn_cast<VectorType>(type)) element = DenseElementsAttr::get(vector, Attribute(element));
  return arith::ConstantOp::create(b, loc, element);
}
Value Loops::zero(Type type) { return arith::ConstantOp::create(b, loc, b.getZeroAttr(type)); }
Value Loops::one(Type type) { return arith::ConstantOp::create(b, loc, b.getOneAttr(type)); }
Value Loops::identity(Combiner combiner, Type type) {
  if (combiner == Combiner::Add) return zero(type);
  return splat(type, b.getFloatAttr(getElementTypeOrSelf(type), -INFINITY));
}
Value Loops::combine(Combiner combiner, Value x, Value y) {
  if (combiner == Combiner::Add) return addf(x, y);
  return arith::MaximumFOp::create(b, loc, x, y);
}
Values Loops::combineEach(ValueRange running, Values below, Combiners combiners) {
  for (auto [i, v] : llvm::enumerate(below)) v = combine(combinerAt(combiners, i), running[i], v);
  return below;
}

Value Loops::addf(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y, arith::FastMathFlags::contract);
}
Value Loops::tree(ArrayRef<Value> values, Combiner combiner) {
  if (values.size() == 1) return values[0];
  size_t half = llvm::PowerOf2Ceil(values.size()) / 2;
  return combine(combiner, tree(values.take_front(half), combiner), tree(values.drop_front(half), combiner));
}
Value Loops::scale(Value v, double factor) {
  const Type type = v.getType();
  return arith::MulFOp::create(b, loc, v, splat(type, b.getFloatAttr(getElementTypeOrSelf(type), factor)),
                               arith::FastMathFlags::contract);
}
Value Loops::middle(ArrayRef<Value> v) {
  if (v.size() > 4) {
    Values pairs;
    for (size_t i = 0; i < v.size(); i += 2) pairs.push_back(scale(addf(v[i], v[i + 1]), 0.5));
    return middle(pairs);
  }
  auto low = [&](Value x, Value y) { return arith::MinimumFOp::create(b, loc, x, y); };
  auto high = [&](Value x, Value y) { return arith::MaximumFOp::create(b, loc, x, y); };
  // The middle values of four are the larger of the pairs' minima and the smaller of their maxima.
  return scale(addf(high(low(v[0], v[1]), low(v[2], v[3])), low(high(v[0], v[1]), high(v[2], v[3]))), 0.5);
}
Value Loops::broadcast(Value scalar, int64_t lanes) {
  if (isa<VectorType>(scalar.getType()) || !lanes) return scalar;
  return vector::BroadcastOp::create(b, loc, VectorType::get({lanes}, scalar.getType()), scalar);
}

Value Loops::fromBF16(Value bits, Type element) {
  Value narrow = arith::BitcastOp::create(b, loc, withElement(bits.getType(), b.getBF16Type()), bits);
  return arith::ExtFOp::create(b, loc, withElement(bits.getType(), element), narrow);
}

Value Loops::toBF16(Value v) {
  Value f32 = convert(v, b.getF32Type());
  Value narrow = arith::TruncFOp::create(b, loc, withElement(v.getType(), b.getBF16Type()), f32);
  return arith::BitcastOp::create(b, loc, withElement(v.getType(), b.getI16Type()), narrow);
}

Value Loops::convert(Value v, Type element) {
  Type from = getElementTypeOrSelf(v.getType());
  if (from == element) return v;
  Type to = withElement(v.getType(), element);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(b, loc, to, v);
  return arith::TruncFOp::create(b, loc, to, v);
}

Value Loops::laneMask(Value count, int64_t lanes) {
  return vector::CreateMaskOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()), count);
}

}  // namespace normc::codegen
