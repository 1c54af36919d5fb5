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
///
/// `convert`: a single int8 is made by a conversion instead of by bits. ptxas 13.0 takes a stored byte of a
/// sum for a conversion to an unsigned byte, so the bits of a float must not be stored as a byte there.
mlir::Value quantized(Loops&, mlir::Type, mlir::Value, bool convert = false);

}  // namespace normc::codegen
