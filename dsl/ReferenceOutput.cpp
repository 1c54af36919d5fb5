// From x0 to y, and from the gradient of y to that of the affine and of what stands behind it.
#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

// Returns v, the output of the affine.
Tracked affine(const Call& call, int64_t feature, Tracked x0, Tracked r, Tracked shift) {
  const Spec& spec = call.spec;
  Tracked value = x0;
  if (spec.renorm.kind != Renorm::None && spec.renorm.forward) value = r * value + shift;
  if (spec.scale) value = factorOf(call, feature) * value;
  if (spec.bias) value = value + exact(call.given.bias[feature]);
  return value;
}

// Returns the factor of `modulate`, for a spec that has its scale.
Tracked modulationAt(const Call& call, At at) {
  return rounded(exact(call.settings.modOffset) + call.input(kModScale, at));
}

// Returns m, the input of a gate behind the norm.
Tracked modulated(const Call& call, At at, Tracked v) {
  const auto& modulate = call.spec.modulate;
  if (modulate && modulate->scale) v = rounded(modulationAt(call, at) * v);
  if (modulate && modulate->shift) v = rounded(v + call.input(kModShift, at));
  return v;
}

// Returns o, the input of the activation.
Tracked gatedWithResidual(const Call& call, At at, Tracked m) {
  if (call.spec.hasGate(/*before=*/false)) m = rounded(gateAt(call, at).value * m);
  if (call.spec.hasResidual(/*after=*/true)) m = rounded(m + call.input(kResidual, at));
  return m;
}

// Returns the magnitude of the errors of o. An infinite o is exact: psi and its slope stand still there.
double errorsOf(Tracked o) { return std::isinf(o.value) ? 0 : o.magnitude; }

Tracked slopeAt(const Call& call, Tracked o) {
  const Function at = functionAt(call.spec.activation, o.value);
  const double slope = at.slope.value, errors = errorsOf(o);
  double magnitude = std::abs(slope) + at.slope.terms + at.largestCurvature * errors;
  // The corner of relu: either slope is right, an error of 1. The unit is what the tolerance grants.
  const double unit = call.problem.statistics() == DType::F64 ? kUnit * 0x1p-28 : kUnit;
  const bool corner = errors > 0 && std::abs(o.value) <= unit * errors;
  if (call.spec.activation == Activation::Relu && corner) magnitude += 1 / unit;
  return {slope, magnitude};
}

}  // namespace

Tracked factorOf(const Call& call, int64_t feature) {
  const Tracked scale = exact(call.given.scale[feature]);
  return call.spec.scaleOffset ? exact(call.settings.scaleOffset) + scale : scale;
}

// Tolerance.h derives the magnitudes.
Tracked output(const Call& call, At at, Tracked x0, Tracked r, Tracked shift) {
  const Tracked v = affine(call, at.feature, x0, r, shift);
  const Tracked o = gatedWithResidual(call, at, modulated(call, at, v));
  if (call.spec.activation == Activation::None) return o;
  const Function function = functionAt(call.spec.activation, o.value);
  return flushed({function.value.value, function.largestSlope * errorsOf(o) + function.value.terms});
}

Tracked gradientOfAffine(const Call& call, At at, Tracked x0, Tracked r, Tracked shift,
                         Gradients& gradients) {
  const Spec& spec = call.spec;
  const bool activated = spec.activation != Activation::None, gated = spec.hasGate(/*before=*/false);
  // What is not needed may lack its inputs.
  const Tracked v = spec.recomputesOutput() ? affine(call, at.feature, x0, r, shift) : Tracked{};
  const Tracked m = activated || gated ? modulated(call, at, v) : Tracked{};
  Tracked gradient = call.input(kDy, at);
  if (activated) gradient = gradient * slopeAt(call, gatedWithResidual(call, at, m));
  if (spec.hasResidual(/*after=*/true)) gradients.add(kDresidual, at, gradient);
  if (gated) {
    const Gated gate = gateAt(call, at);
    gradients.add(kDgate, at, rounded(gradient * (m * gate.slope)));
    gradient = rounded(gradient * gate.value);
  }
  if (!spec.modulate) return gradient;
  if (spec.modulate->shift) gradients.add(kDmodShift, at, gradient);
  if (!spec.modulate->scale) return gradient;
  gradients.add(kDmodScale, at, gradient * v);
  return rounded(gradient * modulationAt(call, at));
}

}  // namespace normc::reference
