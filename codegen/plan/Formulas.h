// Formulas of scalars that all plans share. Notation as in dsl/Spec.h.
#pragma once

#include "codegen/plan/Builder.h"

namespace normc::codegen {

/// Returns s of a second moment v, in the spec's epsilon mode.
Num inverseRoot(KernelBuilder&, Num v, Num epsilon);
/// Returns f of the backward: the factor by which d s / d v differs from that of mode `add`.
Num rootFactor(KernelBuilder&, Num v, Num s, Num epsilon);

/// Returns what the affine adds to the scale; absent if nothing.
Num scaleOffset(KernelBuilder&);
/// Return the parameters of a slab of one feature: the factor of the affine, and the bias. Absent if the norm
/// has none.
Num factorOfFeature(KernelBuilder&);
Num biasOfFeature(KernelBuilder&);

/// Returns phi'(z) of the gate; absent if it is 1.
Num slopeOfGate(KernelBuilder&, Num z);

/// True if the exact gradient of the spec's moment has a rho that differs from x0: (u - mean of u) s of a
/// central moment, else u s.
bool hasOwnRho(const Spec&);

inline Num add(Num a, Num b) { return !a ? b : !b ? a : a + b; }
inline Num multiply(Num a, Num b) { return !a ? b : !b ? a : a * b; }

}  // namespace normc::codegen
