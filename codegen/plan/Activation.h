// Activations of an element (Activation of dsl/Spec.h) and their derivatives, as formulas of the statistics
// type.
//
// The formulas need only e^x for x <= 0 of the transcendental functions, so nothing overflows. The largest
// errors that were found, of f32 and f64, in units of the last place (bounds:
// tests/codegen/ActivationValues.h):
//
//               value  derivative
//   relu           0        0
//   sigmoid      2.3      4.0
//   silu         2.9      4.6
//   tanh         2.4      3.9
//   gelu         8.5      3.9
//   gelu_tanh    2.2      3.3
//
// On a GPU those of f32 have up to 2 units more (codegen/targets/cuda/Approximations.h).
//
// Where the two terms of a derivative cancel, units are those of the larger. The errors of gelu_tanh are also
// multiplied by the condition of e^u: where t is so negative that the value is near 0, they grow with |u|.
// e^x is 0 where it would be subnormal.
//
// Infinities give what the formulas give in double precision: where an infinity meets a factor 0, NaN. That
// is so for the values of silu, gelu and gelu_tanh at -inf and for their derivatives at both infinities.
#pragma once

#include "codegen/plan/Builder.h"
#include "dsl/Spec.h"

namespace normc::codegen {

/// Returns psi(t). `t`, like the result, is of the statistics type.
Num activated(KernelBuilder&, Activation, Num t);

/// Returns psi'(t); of relu 1 for t > 0, else 0.
Num activationSlope(KernelBuilder&, Activation, Num t);

}  // namespace normc::codegen
