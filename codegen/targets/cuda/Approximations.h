// Approximations of functions that a GPU has as one instruction.
#pragma once

#include "codegen/Pass.h"

namespace normc::codegen::cuda {

/// approximate-functions: replaces two operations on f32, scalars or vectors, that are marked
/// `normc.approximate` (codegen/plan/Num.h):
///
///   math.exp     of x <= 0, by ex2.approx of a number between -1/2 and 1/2, times a power of two: 3 units
///                in the last place, and 0 or subnormal where the result would be subnormal
///   arith.divf   by a product with rcp.approx: 2 units
///
/// The units are the sum of the roundings and of the errors that NVIDIA states, 2 of ex2.approx and 1 of
/// rcp.approx. Before expand-exp, which replaces the other exponentials.
PassPtr approximateFunctions();

}  // namespace normc::codegen::cuda
