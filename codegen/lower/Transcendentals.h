// Functions that no instruction computes, or none that is fast.
//
// math.log and math.exp become polynomials in f64: kernels are freestanding, so there is no libm to call. Geometric
// windows need them, on O(features) values; accuracy comes before speed (below 2e-16 relative, for results that are not
// subnormal). math.rsqrt is a root and a division, but for statistics per feature side by side: where rows are few, those
// two took a fifth of the time. There, a division by what is the same for all features is products as well.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace normc::codegen {

class Loops;

/// 1 / sqrt(x) of a vector of numbers by products, within 1 ulp, the same on every processor; by a root and a division
/// where one of them is zero, negative, subnormal or not finite, and of f64.
mlir::Value inverseSqrt(Loops&, mlir::Value x);

/// The vector `x` / the number `n`, 1 or more, by products with its reciprocal: what a division gives (Markstein's
/// correction), but 1 ulp off where 2^-24 x is subnormal, and +0 for -0.
mlir::Value quotient(Loops&, mlir::Value x, mlir::Value n);

void expandTranscendentals(mlir::ModuleOp);

}  // namespace normc::codegen
