#include "codegen/lower/Transcendentals.h"

#include <limits>

#include "codegen/lower/Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace normc::codegen {
namespace {

/// Emits arithmetic on f64 or f32, scalars or vectors of one shape.
class Floats {
 public:
  Floats(Loops& loops, Value like) : l_(loops), type_(like.getType()) {}

  Value number(double v) { return constant(type_, l_.b.getFloatAttr(getElementTypeOrSelf(type_), v)); }
  Value bits(int64_t v) {
    return constant(intType(), l_.b.getIntegerAttr(getElementTypeOrSelf(intType()), v));
  }
  Type intType() {
    return withElement(l_.b.getIntegerType(getElementTypeOrSelf(type_).getIntOrFloatBitWidth()));
  }
  Value fma(Value a, Value b, Value c) { return math::FmaOp::create(l_.b, l_.loc, a, b, c); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(l_.b, l_.loc, a, b); }
  Value add(Value a, Value b) { return arith::AddFOp::create(l_.b, l_.loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(l_.b, l_.loc, a, b); }
  Value neg(Value a) { return arith::NegFOp::create(l_.b, l_.loc, a); }
  Value sqrt(Value a) { return math::SqrtOp::create(l_.b, l_.loc, a); }
  Value div(Value a, Value b) { return arith::DivFOp::create(l_.b, l_.loc, a, b); }
  Value compare(arith::CmpFPredicate p, Value a, double b) {
    return arith::CmpFOp::create(l_.b, l_.loc, p, a, number(b));
  }
  Value select(Value c, Value yes, Value no) { return arith::SelectOp::create(l_.b, l_.loc, c, yes, no); }
  Value toBits(Value v) { return arith::BitcastOp::create(l_.b, l_.loc, intType(), v); }
  Value fromBits(Value v) { return arith::BitcastOp::create(l_.b, l_.loc, type_, v); }
  Value fromInt(Value v) { return arith::SIToFPOp::create(l_.b, l_.loc, type_, v); }
  Value toInt(Value v) { return arith::FPToSIOp::create(l_.b, l_.loc, intType(), v); }
  template <typename Op>
  Value integer(Value a, int64_t b) {
    return Op::create(l_.b, l_.loc, a, bits(b));
  }
  template <typename Op>
  Value integer(int64_t a, Value b) {
    return Op::create(l_.b, l_.loc, bits(a), b);
  }

 private:
  Type withElement(Type element) {
    auto vector = dyn_cast<VectorType>(type_);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value constant(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type)) value = DenseElementsAttr::get(vector, Attribute(value));
    return arith::ConstantOp::create(l_.b, l_.loc, value);
  }
  Loops& l_;
  Type type_;
};

constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;

/// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
Value logOf(Floats& d, Value x) {
  Value bits = d.toBits(x);
  Value exponent =
      d.integer<arith::SubIOp>(d.integer<arith::AndIOp>(d.integer<arith::ShRUIOp>(bits, 52), 0x7ff), 1023);
  Value mantissa = d.fromBits(
      d.integer<arith::OrIOp>(d.integer<arith::AndIOp>(bits, 0xfffffffffffff), 0x3ff0000000000000));
  Value high = d.compare(arith::CmpFPredicate::OGT, mantissa, 0x1.6a09e667f3bcdp0);
  Value m = d.select(high, d.mul(mantissa, d.number(0.5)), mantissa);
  Value e = d.add(d.fromInt(exponent), d.select(high, d.number(1), d.number(0)));
  Value t = d.div(d.sub(m, d.number(1)), d.add(m, d.number(1)));
  Value square = d.mul(t, t), series = d.number(1.0 / 21);
  for (int odd = 19; odd >= 1; odd -= 2) series = d.fma(series, square, d.number(1.0 / odd));
  Value result =
      d.fma(e, d.number(kLn2High), d.fma(e, d.number(kLn2Low), d.mul(d.mul(t, d.number(2)), series)));
  double infinity = std::numeric_limits<double>::infinity();
  result = d.select(d.compare(arith::CmpFPredicate::OEQ, x, infinity), x, result);
  result = d.select(d.compare(arith::CmpFPredicate::OEQ, x, 0), d.number(-infinity), result);
  Value undefined = d.compare(arith::CmpFPredicate::ULT, x, 0);
  return d.select(undefined, d.number(std::numeric_limits<double>::quiet_NaN()), result);
}

/// x = k ln 2 + r with |r| <= ln 2 / 2; a Taylor series in r, scaled by 2^k.
Value expOf(Floats& d, Value x) {
  Value low = d.compare(arith::CmpFPredicate::OLT, x, -708),
        high = d.compare(arith::CmpFPredicate::OGT, x, 709);
  Value inside = d.select(low, d.number(-708), d.select(high, d.number(709), x));
  // NaN must not reach the conversion to an integer.
  inside = d.select(d.compare(arith::CmpFPredicate::UNO, x, 0), d.number(0), inside);
  Value scaled = d.mul(inside, d.number(0x1.71547652b82fep0));
  Value half = d.select(d.compare(arith::CmpFPredicate::OLT, inside, 0), d.number(-0.5), d.number(0.5));
  Value k = d.toInt(d.add(scaled, half));
  Value kd = d.fromInt(k);
  Value r = d.fma(kd, d.number(-kLn2Low), d.fma(kd, d.number(-kLn2High), inside));
  Value series = d.number(1);
  for (int n = 14; n >= 1; --n) series = d.fma(series, d.mul(r, d.number(1.0 / n)), d.number(1));
  Value power = d.fromBits(d.integer<arith::ShLIOp>(d.integer<arith::AddIOp>(k, 1023), 52));
  Value result = d.mul(series, power);
  result =
      d.select(low, d.number(0), d.select(high, d.number(std::numeric_limits<double>::infinity()), result));
  return d.select(d.compare(arith::CmpFPredicate::UNO, x, 0), x, result);
}

Value exactInverseSqrt(Floats& f, Value x) { return f.div(f.number(1), f.sqrt(x)); }

/// An integer seed and a Newton step, whose three constants were searched together, give 6.5e-4; a step of
/// third order then gives 1 ulp. Only for positive f32 that are neither subnormal nor infinite.
Value usualInverseSqrt(Floats& f, Value x) {
  Value half = f.integer<arith::ShRUIOp>(f.toBits(x), 1);
  Value seed = f.fromBits(f.integer<arith::SubIOp>(0x5f1ffeb4, half));
  Value y =
      f.mul(f.mul(seed, f.number(0.70400762)), f.fma(f.neg(f.mul(x, seed)), seed, f.number(2.38911931)));
  Value error = f.fma(f.neg(f.mul(x, y)), y, f.number(1));
  return f.fma(f.mul(y, error), f.fma(error, f.number(0.375), f.number(0.5)), y);
}

template <typename Op>
void expand(ModuleOp module, Value (*formula)(Floats&, Value)) {
  module.walk([&](Op op) {
    OpBuilder b(op);
    Loops loops(b, op.getLoc());
    Value x = loops.convert(op.getOperand(), b.getF64Type());
    Floats d(loops, x);
    op.replaceAllUsesWith(loops.convert(formula(d, x), getElementTypeOrSelf(op.getType())));
    op.erase();
  });
}

}  // namespace

Value inverseSqrt(Loops& l, Value x) {
  Floats f(l, x);
  if (!getElementTypeOrSelf(x.getType()).isF32()) return exactInverseSqrt(f, x);
  // Positive normal numbers are [0x00800000, 0x7f800000) as integers: one unsigned comparison tests both
  // ends.
  Value normal = f.integer<arith::SubIOp>(f.toBits(x), 0x00800000);
  Value usual = arith::CmpIOp::create(l.b, l.loc, arith::CmpIPredicate::ult, normal, f.bits(0x7f000000));
  Value all = vector::ReductionOp::create(l.b, l.loc, vector::CombiningKind::AND, usual);
  Value y = usualInverseSqrt(f, x);
  return l.when(l.isFalse(all), y, [&] { return Values{f.select(usual, y, exactInverseSqrt(f, x))}; })[0];
}

Value quotient(Loops& l, Value x, Value n) {
  Floats one(l, n), f(l, x);
  const int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  Value reciprocal = l.broadcast(one.div(one.number(1), n), lanes), q = f.mul(x, reciprocal);
  Value rest = f.fma(f.neg(q), l.broadcast(n, lanes), x);  // NaN where q is infinite
  Value known = arith::CmpFOp::create(l.b, l.loc, arith::CmpFPredicate::ORD, rest, rest);
  return f.select(known, f.fma(rest, reciprocal, q), q);
}

void expandTranscendentals(ModuleOp module) {
  module.walk([](math::RsqrtOp op) {
    OpBuilder b(op);
    Loops loops(b, op.getLoc());
    Floats f(loops, op.getOperand());
    op.replaceAllUsesWith(exactInverseSqrt(f, op.getOperand()));
    op.erase();
  });
  expand<math::LogOp>(module, logOf);
  expand<math::ExpOp>(module, expOf);
}

}  // namespace normc::codegen
