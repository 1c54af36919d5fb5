// The 8-bit types of quantized outputs: integers, floats of four bits of exponent, and powers of two.
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/lower/Loops.h"

namespace normc::codegen {

/// True if elements of the type are stored as `quantized` makes them.
bool isQuantizedType(mlir::Type);
inline bool isQuantized(TensorOp t) { return isQuantizedType(t.getType()); }

/// Returns the bytes, i8, that a tensor of such a type stores. Of codes `value` is floating: it is rounded to
/// the nearest code, ties to even, and saturated; a NaN becomes any code. Of powers of two it is the integer
/// exponent + 127. Scalars or vectors.
mlir::Value quantized(Loops&, mlir::Type, mlir::Value);

}  // namespace normc::codegen
