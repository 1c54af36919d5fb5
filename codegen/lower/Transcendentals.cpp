#include "codegen/lower/Transcendentals.h"

#include <limits>

#include "codegen/lower/Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace normc::codegen {
namespace {

/// Arithmetic on f64 scalars or vectors of one shape.
class Doubles {
 public:
  Doubles(Loops& loops, Value like) : l_(loops), type_(like.getType()) {}

  Value number(double v) { return constant(type_, l_.b.getF64FloatAttr(v)); }
  Value bits(int64_t v) { return constant(intType(), l_.b.getI64IntegerAttr(v)); }
  Type intType() { return withElement(l_.b.getI64Type()); }
  Value fma(Value a, Value b, Value c) { return math::FmaOp::create(l_.b, l_.loc, a, b, c); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(l_.b, l_.loc, a, b); }
  Value add(Value a, Value b) { return arith::AddFOp::create(l_.b, l_.loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(l_.b, l_.loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(l_.b, l_.loc, a, b); }
  Value compare(arith::CmpFPredicate p, Value a, double b) { return arith::CmpFOp::create(l_.b, l_.loc, p, a, number(b)); }
  Value select(Value c, Value yes, Value no) { return arith::SelectOp::create(l_.b, l_.loc, c, yes, no); }
  Value toBits(Value v) { return arith::BitcastOp::create(l_.b, l_.loc, intType(), v); }
  Value fromBits(Value v) { return arith::BitcastOp::create(l_.b, l_.loc, type_, v); }
  Value fromInt(Value v) { return arith::SIToFPOp::create(l_.b, l_.loc, type_, v); }
  Value toInt(Value v) { return arith::FPToSIOp::create(l_.b, l_.loc, intType(), v); }
  template <typename Op>
  Value integer(Value a, int64_t b) { return Op::create(l_.b, l_.loc, a, bits(b)); }

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
Value logOf(Doubles& d, Value x) {
  Value bits = d.toBits(x);
  Value exponent = d.integer<arith::SubIOp>(d.integer<arith::AndIOp>(d.integer<arith::ShRUIOp>(bits, 52), 0x7ff), 1023);
  Value mantissa = d.fromBits(d.integer<arith::OrIOp>(d.integer<arith::AndIOp>(bits, 0xfffffffffffff), 0x3ff0000000000000));
  Value high = d.compare(arith::CmpFPredicate::OGT, mantissa, 0x1.6a09e667f3bcdp0);
  Value m = d.select(high, d.mul(mantissa, d.number(0.5)), mantissa);
  Value e = d.add(d.fromInt(exponent), d.select(high, d.number(1), d.number(0)));
  Value t = d.div(d.sub(m, d.number(1)), d.add(m, d.number(1)));
  Value square = d.mul(t, t), series = d.number(1.0 / 21);
  for (int odd = 19; odd >= 1; odd -= 2) series = d.fma(series, square, d.number(1.0 / odd));
  Value result = d.fma(e, d.number(kLn2High), d.fma(e, d.number(kLn2Low), d.mul(d.mul(t, d.number(2)), series)));
  double infinity = std::numeric_limits<double>::infinity();
  result = d.select(d.compare(arith::CmpFPredicate::OEQ, x, infinity), x, result);
  result = d.select(d.compare(arith::CmpFPredicate::OEQ, x, 0), d.number(-infinity), result);
  Value undefined = d.compare(arith::CmpFPredicate::ULT, x, 0);
  return d.select(undefined, d.number(std::numeric_limits<double>::quiet_NaN()), result);
}

/// x = k ln 2 + r with |r| <= ln 2 / 2; a Taylor series in r, scaled by 2^k.
Value expOf(Doubles& d, Value x) {
  Value low = d.compare(arith::CmpFPredicate::OLT, x, -708), high = d.compare(arith::CmpFPredicate::OGT, x, 709);
  Value inside = d.select(low, d.number(-708), d.select(high, d.number(709), x));
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
  result = d.select(low, d.number(0), d.select(high, d.number(std::numeric_limits<double>::infinity()), result));
  return d.select(d.compare(arith::CmpFPredicate::UNO, x, 0), x, result);
}

template <typename Op>
void expand(ModuleOp module, Value (*formula)(Doubles&, Value)) {
  module.walk([&](Op op) {
    OpBuilder b(op);
    Loops loops(b, op.getLoc());
    Value x = loops.convert(op.getOperand(), b.getF64Type());
    Doubles d(loops, x);
    op.replaceAllUsesWith(loops.convert(formula(d, x), getElementTypeOrSelf(op.getType())));
    op.erase();
  });
}

}  // namespace

void expandTranscendentals(ModuleOp module) {
  expand<math::LogOp>(module, logOf);
  expand<math::ExpOp>(module, expOf);
}

}  // namespace normc::codegen
