// Divisions by a number that many sums are divided by, as products.
#include "codegen/lower/Expand.h"
#include "codegen/lower/Floats.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

static Value quotient(Loops& l, Value x, Value n) {
  Floats one(l, n), f(l, x);
  auto vector = dyn_cast<VectorType>(x.getType());
  auto all = [&](Value v) { return vector ? l.broadcast(v, vector.getNumElements()) : v; };
  Value reciprocal = all(one.div(one.number(1), n)), q = f.mul(x, reciprocal);
  Value rest = f.fma(f.neg(q), all(n), x);  // NaN where q is infinite
  Value known = arith::CmpFOp::create(l.b, l.loc, arith::CmpFPredicate::ORD, rest, rest);
  return f.select(known, f.fma(rest, reciprocal, q), q);
}

PassPtr expandDivision() {
  return modulePass("expand-division", [](ModuleOp module) {
    module.walk([](arith::DivFOp op) {
      if (!op->hasAttr("normc.products")) return;
      Value number = op.getRhs();
      if (auto broadcast = number.getDefiningOp<vector::BroadcastOp>()) number = broadcast.getSource();
      OpBuilder b(op);
      Loops l(b, op.getLoc());
      op.replaceAllUsesWith(quotient(l, op.getLhs(), number));
      op.erase();
    });
  });
}

}  // namespace normc::codegen
