#include "codegen/targets/cuda/Approximations.h"

#include "codegen/lower/Floats.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen::cuda {
namespace {

/// Calls an intrinsic of one f32 on each lane.
Value onLanes(Loops& l, StringRef intrinsic, Value x) {
  const auto call = [&](Value lane) {
    return LLVM::CallIntrinsicOp::create(l.b, l.loc, lane.getType(), l.b.getStringAttr(intrinsic), lane)
        .getResult(0);
  };
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector) return call(x);
  Value result = l.splat(vector, l.b.getF32FloatAttr(0));
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    result =
        vector::InsertOp::create(l.b, l.loc, call(vector::ExtractOp::create(l.b, l.loc, x, i)), result, i);
  return result;
}

/// x = (k + r) ln 2 with |r| <= 1/2. A sum with `rounder` has k and the bias of exponents in its lowest bits,
/// which are 0 for the least x: then 2^k is 0, too.
Value expOf(Loops& l, Value x) {
  constexpr double kRounder = 0x1.8p23 + 127, kLog2High = 0x1.715476p0, kLog2Low = 0x1.4ae0cp-26;
  constexpr double kLeast = -88;
  constexpr int64_t kFractionBits = 23;
  Floats f(l, x);
  x = arith::MaximumFOp::create(l.b, l.loc, x, f.number(kLeast));
  Value sum = f.fma(x, f.number(kLog2High), f.number(kRounder));
  Value k = f.sub(sum, f.number(kRounder));
  Value r = f.fma(x, f.number(kLog2Low), f.fma(x, f.number(kLog2High), f.neg(k)));
  Value scale = f.fromBits(f.integer<arith::ShLIOp>(f.toBits(sum), kFractionBits));
  return f.mul(onLanes(l, "llvm.nvvm.ex2.approx.ftz.f32", r), scale);
}

Value ratioOf(Loops& l, Value a, Value b) {
  return Floats(l, a).mul(a, onLanes(l, "llvm.nvvm.rcp.approx.ftz.f", b));
}

template <typename Op>
void replaceEach(ModuleOp module, function_ref<Value(Loops&, Op)> formula) {
  module.walk([&](Op op) {
    if (!op->hasAttr("normc.approximate") || !getElementTypeOrSelf(op.getType()).isF32()) return;
    OpBuilder b(op);
    Loops l(b, op.getLoc());
    op.replaceAllUsesWith(formula(l, op));
    op.erase();
  });
}

}  // namespace

PassPtr approximateFunctions() {
  return modulePass("approximate-functions", [](ModuleOp module) {
    replaceEach<math::ExpOp>(module, [](Loops& l, math::ExpOp op) { return expOf(l, op.getOperand()); });
    replaceEach<arith::DivFOp>(
        module, [](Loops& l, arith::DivFOp op) { return ratioOf(l, op.getLhs(), op.getRhs()); });
  });
}

}  // namespace normc::codegen::cuda
