// Exponentials as a polynomial.
#include "codegen/lower/Expand.h"
#include "codegen/lower/Floats.h"

using namespace mlir;

namespace normc::codegen {
namespace {

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

}  // namespace

PassPtr expandExp() {
  return modulePass("expand-exp", [](ModuleOp module) { expandEach<math::ExpOp>(module, expOf); });
}

}  // namespace normc::codegen
