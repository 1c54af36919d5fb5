#include "codegen/plan/Num.h"

#include <cmath>

#include "codegen/plan/Builder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace normc::codegen {

template <typename Op>
static Num binary(Num a, Num b) {
  auto& ops = a.builder->ops();
  return {a.builder, Op::create(ops, a.builder->loc(), a.value, b.value, arith::FastMathFlags::contract)};
}
static Num constantLike(Num like, double value) {
  auto& ops = like.builder->ops();
  auto attr = ops.getFloatAttr(like.value.getType(), value);
  return {like.builder, arith::ConstantOp::create(ops, like.builder->loc(), attr)};
}
Num operator+(Num a, Num b) { return binary<arith::AddFOp>(a, b); }
Num operator-(Num a, Num b) { return binary<arith::SubFOp>(a, b); }
Num operator*(Num a, Num b) { return binary<arith::MulFOp>(a, b); }
Num operator/(Num a, Num b) { return binary<arith::DivFOp>(a, b); }
Num operator+(Num a, double b) { return a + constantLike(a, b); }
Num operator-(Num a, double b) { return a + -b; }
Num operator-(double a, Num b) { return constantLike(b, a) - b; }
Num operator*(Num a, double b) { return a * constantLike(a, b); }
Num operator/(double a, Num b) { return constantLike(b, a) / b; }
Num operator-(Num a) {
  return {a.builder, arith::NegFOp::create(a.builder->ops(), a.builder->loc(), a.value)};
}

static Num compare(arith::CmpFPredicate predicate, Num a, Num b) {
  return {a.builder, arith::CmpFOp::create(a.builder->ops(), a.builder->loc(), predicate, a.value, b.value)};
}
Num operator<=(Num a, Num b) { return compare(arith::CmpFPredicate::OLE, a, b); }
Num operator>(Num a, double b) { return compare(arith::CmpFPredicate::OGT, a, constantLike(a, b)); }
Num operator&&(Num a, Num b) {
  return {a.builder, arith::AndIOp::create(a.builder->ops(), a.builder->loc(), a.value, b.value)};
}
Num operator||(Num a, Num b) {
  return {a.builder, arith::OrIOp::create(a.builder->ops(), a.builder->loc(), a.value, b.value)};
}
// A comparison and a select: a NaN in `b` is passed on, so the limit goes first.
Num max(Num a, Num b) { return select(compare(arith::CmpFPredicate::OGT, a, b), a, b); }
Num min(Num a, Num b) { return select(compare(arith::CmpFPredicate::OLT, a, b), a, b); }
Num sqrt(Num a) { return {a.builder, math::SqrtOp::create(a.builder->ops(), a.builder->loc(), a.value)}; }
Num inverseSqrt(Num a) {
  return {a.builder, math::RsqrtOp::create(a.builder->ops(), a.builder->loc(), a.value)};
}
Num log(Num a) { return {a.builder, math::LogOp::create(a.builder->ops(), a.builder->loc(), a.value)}; }
Num exp(Num a) { return {a.builder, math::ExpOp::create(a.builder->ops(), a.builder->loc(), a.value)}; }
Num select(Num condition, Num yes, Num no) {
  auto& ops = yes.builder->ops();
  return {yes.builder,
          arith::SelectOp::create(ops, yes.builder->loc(), condition.value, yes.value, no.value)};
}

static Num marked(Num result, llvm::StringRef mark) {
  result.value.getDefiningOp()->setAttr(mark, result.builder->ops().getUnitAttr());
  return result;
}
Num quotient(Num sum, Num count) { return marked(sum / count, "normc.products"); }
Num approximateExp(Num a) { return marked(exp(a), "normc.approximate"); }
Num approximateQuotient(Num a, Num b) { return marked(a / b, "normc.approximate"); }
Num meanOf(Num sum, Num count) { return sum * (1.0 / count); }

Num finiteOr(Num x, Num otherwise) {
  Num difference = x - x;  // NaN unless x is finite
  return select(compare(arith::CmpFPredicate::ORD, difference, difference), x, otherwise);
}

Num abs(Num a) { return {a.builder, math::AbsFOp::create(a.builder->ops(), a.builder->loc(), a.value)}; }
Num combine(Combiner combiner, Num a, Num b) {
  return combiner == Combiner::Add ? a + b : binary<arith::MaximumFOp>(a, b);
}
double identityOf(Combiner combiner) { return combiner == Combiner::Add ? 0 : -INFINITY; }
Num product(Num a, Num b) {
  return {a.builder, arith::MulFOp::create(a.builder->ops(), a.builder->loc(), a.value, b.value)};
}
Num fma(Num a, Num b, Num c) {
  return {a.builder, math::FmaOp::create(a.builder->ops(), a.builder->loc(), a.value, b.value, c.value)};
}

}  // namespace normc::codegen
