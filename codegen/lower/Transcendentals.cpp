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
  /// a b + c, rounded once where the target has an instruction for that; other generators choose, too.
  Value mulAdd(Value a, Value b, Value c) {
    constexpr auto contract = arith::FastMathFlags::contract;
    return arith::AddFOp::create(l_.b, l_.loc, arith::MulFOp::create(l_.b, l_.loc, a, b, contract), c,
                                 contract);
  }
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
  template <typename Op>
  Value integer(Value a, int64_t b) {
    return Op::create(l_.b, l_.loc, a, bits(b));
  }
  template <typename Op>
  Value integer(int64_t a, Value b) {
    return Op::create(l_.b, l_.loc, bits(a), b);
  }
  Value subtract(Value a, Value b) { return arith::SubIOp::create(l_.b, l_.loc, a, b); }

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

/// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
Value logOf(Floats& d, Value x) {
  constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
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

/// The constants of e^x in a type of floats.
struct ExpTable {
  int fraction;             ///< bits of the fraction
  double rounder;           ///< its last place is a unit; its lowest bits are the bias of exponents
  double ln2High, ln2Low;   ///< a product of ln2High and an exponent is exact
  double smallest;          ///< below it results would be subnormal
  double top;               ///< above it the exponent may be that of infinities
  double largest;           ///< the last x whose result is finite
  ArrayRef<double> series;  ///< of r^2, r^3, ...
};

/// The coefficients are minimax: relative error 2^-28.2 in f32, 2^-56.1 in f64.
const ExpTable& expTable(bool wide) {
  static constexpr double kSeries32[] = {0.4999999403953552, 0.16666516661643982, 0.041668105870485306,
                                         0.00836913101375103, 0.0013836428988724947};
  static constexpr double kSeries64[] = {
      0.5000000000000011,     0.16666666666666508,   0.041666666666534034,   0.008333333333527362,
      0.0013888888942153424,  0.0001984126945860249, 2.4801494236018592e-05, 2.7557531348441505e-06,
      2.7630111667797727e-07, 2.5057288007713128e-08};
  static const ExpTable k32{23, 0x1.8p23 + 127, 0x1.62e4p-1, 0x1.7f7d1cp-20, -0x1.5d589ep6,
                            88, 0x1.62e42ep6,   kSeries32};
  static const ExpTable k64{
      52,  0x1.8p52 + 1023,     0x1.62e42feep-1, 0x1.a39ef35793c76p-33, -0x1.6232bdd7abcd2p9,
      709, 0x1.62e42fefa39efp9, kSeries64};
  return wide ? k64 : k32;
}

/// x = k ln 2 + r with |r| <= ln 2 / 2; a polynomial in r, scaled by 2^k. A sum with `rounder` has k plus the
/// bias in its lowest bits. The tests for large x are of -x, so that LLVM sees that e^-|t| needs none.
Value expOf(Floats& f, Value x) {
  const ExpTable& t = expTable(getElementTypeOrSelf(x.getType()).isF64());
  Value sum = f.mulAdd(x, f.number(0x1.71547652b82fep0), f.number(t.rounder));
  Value k = f.sub(sum, f.number(t.rounder));
  Value r = f.mulAdd(k, f.number(-t.ln2Low), f.mulAdd(k, f.number(-t.ln2High), x));
  Value series = f.number(t.series.back());
  for (double c : llvm::reverse(t.series.drop_back())) series = f.mulAdd(series, r, f.number(c));
  for (int i = 0; i < 2; ++i) series = f.mulAdd(series, r, f.number(1));
  // 2^(bias + 1) is no number: the last half of the highest binade is scaled twice.
  Value minus = f.neg(x), top = f.compare(arith::CmpFPredicate::OLT, minus, -t.top);
  Value bits = f.integer<arith::ShLIOp>(f.toBits(sum), t.fraction);
  bits = f.subtract(bits, f.select(top, f.bits(int64_t(1) << t.fraction), f.bits(0)));
  Value result = f.mul(f.mul(series, f.fromBits(bits)), f.select(top, f.number(2), f.number(1)));
  const double infinity = std::numeric_limits<double>::infinity();
  result = f.select(f.compare(arith::CmpFPredicate::OLT, minus, -t.largest), f.number(infinity), result);
  return f.select(f.compare(arith::CmpFPredicate::OLT, x, t.smallest), f.number(0), result);
}

/// A mask: the CUDA passes would call the device library.
Value absOf(Floats& f, Value x) {
  const unsigned bits = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  return f.fromBits(f.integer<arith::AndIOp>(f.toBits(x), llvm::maskTrailingOnes<uint64_t>(bits - 1)));
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

/// Replaces the operations by `formula`, evaluated in f64 if `wide`, else in their own type.
template <typename Op>
void expand(ModuleOp module, Value (*formula)(Floats&, Value), bool wide = false) {
  module.walk([&](Op op) {
    OpBuilder b(op);
    Loops loops(b, op.getLoc());
    Value x = op.getOperand();
    if (wide) x = loops.convert(x, b.getF64Type());
    Floats f(loops, x);
    op.replaceAllUsesWith(loops.convert(formula(f, x), getElementTypeOrSelf(op.getType())));
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
  expand<math::RsqrtOp>(module, exactInverseSqrt);
  expand<math::LogOp>(module, logOf, /*wide=*/true);
  expand<math::ExpOp>(module, expOf);
  expand<math::AbsFOp>(module, absOf);
}

}  // namespace normc::codegen
