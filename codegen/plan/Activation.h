// Activations of an element (Activation of dsl/Spec.h) and their derivatives, as formulas of the statistics
// type.
//
// Of transcendental functions only e^x for x <= 0 is needed, so nothing overflows. The largest errors, in
// units of the last place of the result (f32 and f64 alike; tests/end_to_end/ActivationsTest.cpp holds them):
//
//              value  derivative
//   sigmoid      V        V
//
// Infinities give what the formulas give in double precision. In particular t sigmoid(t), t Phi(t) and their
// derivatives are NaN for -inf, since they multiply an infinity by 0.
#pragma once

#include "codegen/plan/Builder.h"
#include "dsl/Spec.h"

namespace normc::codegen {

/// Returns psi(t). `t`, like the result, is of the statistics type.
Num activated(KernelBuilder&, Activation, Num t);

/// Returns psi'(t); of relu 1 for t > 0, else 0.
Num activationSlope(KernelBuilder&, Activation, Num t);

}  // namespace normc::codegen
