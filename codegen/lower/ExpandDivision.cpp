// Divisions by a number that is the same for all features, as products.
#include "codegen/lower/Expand.h"
#include "codegen/lower/Floats.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

static Value quotient(Loops& l, Value x, Value n) {
  Floats one(l, n), f(l, x);
  const int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  Value reciprocal = l.broadcast(one.div(one.number(1), n), lanes), q = f.mul(x, reciprocal);
  Value rest = f.fma(f.neg(q), l.broadcast(n, lanes), x);  // NaN where q is infinite
  Value known = arith::CmpFOp::create(l.b, l.loc, arith::CmpFPredicate::ORD, rest, rest);
  return f.select(known, f.fma(rest, reciprocal, q), q);
}

PassPtr expandDivision() {
  return modulePass("expand-division", [](ModuleOp module) {
    module.walk([](arith::DivFOp op) {
      auto number = op.getRhs().getDefiningOp<vector::BroadcastOp>();
      if (!number || !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::arcp)) return;
      OpBuilder b(op);
      Loops l(b, op.getLoc());
      op.replaceAllUsesWith(quotient(l, op.getLhs(), number.getSource()));
      op.erase();
    });
  });
}

}  // namespace normc::codegen
