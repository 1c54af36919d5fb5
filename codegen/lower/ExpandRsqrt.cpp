// Reciprocal roots as a root and a division, or as products.
#include "codegen/lower/Expand.h"
#include "codegen/lower/Floats.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

static Value exactInverseSqrt(Floats& f, Value x) { return f.div(f.number(1), f.sqrt(x)); }

/// An integer seed and a Newton step, whose three constants were searched together, give 6.5e-4; a step of
/// third order then gives 1 ulp. Only for positive f32 that are neither subnormal nor infinite.
static Value usualInverseSqrt(Floats& f, Value x) {
  Value half = f.integer<arith::ShRUIOp>(f.toBits(x), 1);
  Value seed = f.fromBits(f.integer<arith::SubIOp>(0x5f1ffeb4, half));
  Value y =
      f.mul(f.mul(seed, f.number(0.70400762)), f.fma(f.neg(f.mul(x, seed)), seed, f.number(2.38911931)));
  Value error = f.fma(f.neg(f.mul(x, y)), y, f.number(1));
  return f.fma(f.mul(y, error), f.fma(error, f.number(0.375), f.number(0.5)), y);
}

/// Returns 1 / sqrt(x) of a vector by products.
static Value inverseSqrtByProducts(Loops& l, Value x) {
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

PassPtr expandRsqrt() {
  return modulePass("expand-rsqrt", [](ModuleOp module) {
    module.walk([](math::RsqrtOp op) {
      OpBuilder b(op);
      Loops l(b, op.getLoc());
      Floats f(l, op.getOperand());
      const bool approximate = bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
      op.replaceAllUsesWith(approximate ? inverseSqrtByProducts(l, op.getOperand())
                                        : exactInverseSqrt(f, op.getOperand()));
      op.erase();
    });
  });
}

}  // namespace normc::codegen
