// Functions that no instruction computes, or only a slow one.
//
// Kernels are freestanding, so they cannot call libm. math.exp becomes a polynomial in its own type, f32 or
// f64, scalar or vector, for any input: within 1 ulp, 0 where the result would be subnormal. math.log becomes
// a polynomial in f64, below 2e-16: only statistics per feature need it. math.rsqrt is a root and a division.
// For vectors of statistics per feature it is products instead, because with few rows those two instructions
// took a fifth of the time. A division by a number that is the same for all features is products too.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace normc::codegen {

class Loops;

/// Returns 1 / sqrt(x) of a vector by products, within 1 ulp and the same on every processor. Vectors with an
/// element that is zero, negative, subnormal or not finite, and f64, use a root and a division.
mlir::Value inverseSqrt(Loops&, mlir::Value x);

/// Returns the vector `x` divided by the number `n` >= 1, by products with its reciprocal. The result is that
/// of a division (Markstein's correction), but 1 ulp off if 2^-24 x is subnormal, and +0 for -0.
mlir::Value quotient(Loops&, mlir::Value x, mlir::Value n);

/// Replaces math.exp, log, rsqrt and absf by arithmetic that every target and generator has.
void expandTranscendentals(mlir::ModuleOp);

}  // namespace normc::codegen
