// Logarithms as a polynomial.
#include "codegen/lower/Expand.h"
#include "codegen/lower/Floats.h"

using namespace mlir;

namespace normc::codegen {

/// log x of a finite x above 0, in f64: x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) /
/// (m + 1)).
static Value logOf(Floats& d, Value x) {
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
  return d.fma(e, d.number(kLn2High), d.fma(e, d.number(kLn2Low), d.mul(d.mul(t, d.number(2)), series)));
}

/// Returns log x for any x. Infinities and NaN are found before x is widened: Halide's conversions of floats
/// tell LLVM that there are none.
static Value logOfAny(Loops& l, Value x) {
  Floats f(l, x);
  const Value wide = l.convert(x, l.b.getF64Type());
  Floats d(l, wide);
  const double infinity = std::numeric_limits<double>::infinity();
  Value result = l.convert(logOf(d, wide), getElementTypeOrSelf(x.getType()));
  result = f.select(f.compare(arith::CmpFPredicate::OEQ, x, infinity), x, result);
  result = f.select(f.compare(arith::CmpFPredicate::OEQ, x, 0), f.number(-infinity), result);
  const Value undefined = f.compare(arith::CmpFPredicate::ULT, x, 0);
  return f.select(undefined, f.number(std::numeric_limits<double>::quiet_NaN()), result);
}

PassPtr expandLog() {
  return modulePass("expand-log", [](ModuleOp module) {
    module.walk([](math::LogOp op) {
      OpBuilder b(op);
      Loops loops(b, op.getLoc());
      op.replaceAllUsesWith(logOfAny(loops, op.getOperand()));
      op.erase();
    });
  });
}

}  // namespace normc::codegen
