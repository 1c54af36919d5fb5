// Emits floating-point arithmetic for the passes that replace functions.
#pragma once

#include "codegen/lower/Loops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

namespace normc::codegen {

/// Emits arithmetic on f64 or f32, scalars or vectors of one shape.
class Floats {
 public:
  using Value = mlir::Value;
  Floats(Loops& loops, Value like) : l_(loops), type_(like.getType()) {}

  Value number(double v) { return l_.splat(type_, l_.b.getFloatAttr(mlir::getElementTypeOrSelf(type_), v)); }
  Value bits(int64_t v) {
    return l_.splat(intType(), l_.b.getIntegerAttr(mlir::getElementTypeOrSelf(intType()), v));
  }
  mlir::Type intType() {
    return withElement(type_, l_.b.getIntegerType(mlir::getElementTypeOrSelf(type_).getIntOrFloatBitWidth()));
  }
  Value fma(Value a, Value b, Value c) { return mlir::math::FmaOp::create(l_.b, l_.loc, a, b, c); }
  /// a b + c, rounded once where the target has an instruction for that; other generators choose, too.
  Value mulAdd(Value a, Value b, Value c) {
    constexpr auto contract = mlir::arith::FastMathFlags::contract;
    return mlir::arith::AddFOp::create(
        l_.b, l_.loc, mlir::arith::MulFOp::create(l_.b, l_.loc, a, b, contract), c, contract);
  }
  Value mul(Value a, Value b) { return mlir::arith::MulFOp::create(l_.b, l_.loc, a, b); }
  Value add(Value a, Value b) { return mlir::arith::AddFOp::create(l_.b, l_.loc, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubFOp::create(l_.b, l_.loc, a, b); }
  Value neg(Value a) { return mlir::arith::NegFOp::create(l_.b, l_.loc, a); }
  Value sqrt(Value a) { return mlir::math::SqrtOp::create(l_.b, l_.loc, a); }
  Value div(Value a, Value b) { return mlir::arith::DivFOp::create(l_.b, l_.loc, a, b); }
  Value compare(mlir::arith::CmpFPredicate p, Value a, double b) {
    return mlir::arith::CmpFOp::create(l_.b, l_.loc, p, a, number(b));
  }
  Value select(Value c, Value yes, Value no) {
    return mlir::arith::SelectOp::create(l_.b, l_.loc, c, yes, no);
  }
  Value toBits(Value v) { return mlir::arith::BitcastOp::create(l_.b, l_.loc, intType(), v); }
  Value fromBits(Value v) { return mlir::arith::BitcastOp::create(l_.b, l_.loc, type_, v); }
  Value fromInt(Value v) { return mlir::arith::SIToFPOp::create(l_.b, l_.loc, type_, v); }
  template <typename Op>
  Value integer(Value a, int64_t b) {
    return Op::create(l_.b, l_.loc, a, bits(b));
  }
  template <typename Op>
  Value integer(int64_t a, Value b) {
    return Op::create(l_.b, l_.loc, bits(a), b);
  }
  Value subtract(Value a, Value b) { return mlir::arith::SubIOp::create(l_.b, l_.loc, a, b); }

 private:
  Loops& l_;
  mlir::Type type_;
};

/// Replaces the operations by `formula`, evaluated in their own type.
template <typename Op>
void expandEach(mlir::ModuleOp module, mlir::Value (*formula)(Floats&, mlir::Value)) {
  module.walk([&](Op op) {
    mlir::OpBuilder b(op);
    Loops loops(b, op.getLoc());
    Floats f(loops, op.getOperand());
    op.replaceAllUsesWith(formula(f, op.getOperand()));
    op.erase();
  });
}

}  // namespace normc::codegen
