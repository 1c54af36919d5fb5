// math.log and math.exp as polynomials in f64: kernels are freestanding, so there
// is no libm to call. Geometric windows need them, on O(features) values; accuracy
// comes before speed (below 2e-16 relative, for results that are not subnormal).
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace normc::codegen {

void expandTranscendentals(mlir::ModuleOp);

}  // namespace normc::codegen
