// From x0 to y, and from the gradient of y to that of the affine and of what stands behind it.
#include <algorithm>
#include <cmath>

#include "dsl/ReferenceParts.h"
#include "dsl/Tolerance.h"

namespace normc::reference {
namespace {

// Returns a value that is rounded to the type of the data. Where its error decides which neighbour that is,
// either is right.
Tracked roundedToData(const Call& call, Tracked x0) {
  if (!std::isfinite(x0.value)) return x0;
  const DType data = call.types.data;
  const double value = round(x0.value, data), error = 1.5 * call.unit() * x0.magnitude;
  Tracked result = exact(value);
  for (const double reached : {x0.value - error, x0.value + error})
    result.magnitude =
        std::max(result.magnitude, std::abs(value) + std::abs(round(reached, data) - value) / call.unit());
  return result;
}

// Returns v, the output of the affine.
Tracked affine(const Call& call, int64_t feature, Tracked x0, Tracked r, Tracked shift) {
  const Spec& spec = call.spec;
  Tracked value = x0;
  if (spec.renorm.kind != Renorm::None && spec.renorm.forward) value = r * value + shift;
  if (call.problem.roundsBeforeAffine()) value = roundedToData(call, value);
  if (spec.scale) value = factorOf(call, feature) * value;
  if (spec.bias) value = value + exact(call.given.bias[feature]);
  return value;
}

// Returns the factor of `modulate`, for a spec that has its scale.
Tracked modulationAt(const Call& call, At at) {
  return rounded(exact(call.settings.modOffset) + call.input(kModScale, at));
}

// Returns m.
Tracked modulated(const Call& call, At at, Tracked v) {
  const auto& modulate = call.spec.modulate;
  if (modulate && modulate->scale) v = rounded(modulationAt(call, at) * v);
  if (modulate && modulate->shift) v = rounded(v + call.input(kModShift, at));
  return v;
}

// Returns o, the input of the activation, from t, the input of a gate behind the norm.
Tracked gatedWithResidual(const Call& call, At at, Tracked t) {
  if (call.spec.hasGate(Side::After)) t = rounded(gateAt(call, at).value * t);
  if (call.spec.hasResidual(Side::After)) t = rounded(t + call.input(kResidual, at));
  return t;
}

// Returns the magnitude of the errors of o. An infinite o is exact: psi and its slope stand still there. So
// is one that is NaN: relu has the slope 0 there, and all other results are NaN.
double errorsOf(Tracked o) { return std::isfinite(o.value) ? o.magnitude : 0; }

Tracked slopeAt(const Call& call, Tracked o) {
  const Function at = functionAt(call.spec.activation, o.value);
  const double slope = at.slope.value, errors = errorsOf(o);
  double magnitude = std::abs(slope) + at.slope.terms + at.largestCurvature * errors;
  // The corner of relu: either slope is right, an error of 1.
  const bool corner = errors > 0 && std::abs(o.value) <= call.unit() * errors;
  if (call.spec.activation == Activation::Relu && corner) magnitude += 1 / call.unit();
  return {slope, magnitude};
}

// Returns y from t. Tolerance.h derives the magnitudes.
Tracked output(const Call& call, At at, Tracked t) {
  const Tracked o = gatedWithResidual(call, at, t);
  if (call.spec.activation == Activation::None) return o;
  const Function function = functionAt(call.spec.activation, o.value);
  return flushed({function.value.value, function.largestSlope * errorsOf(o) + function.value.terms});
}

// Returns dt. `t` counts only if behindNeedsOutput().
Tracked gradientBehind(const Call& call, At at, Tracked t, Gradients& gradients) {
  const Spec& spec = call.spec;
  Tracked gradient = call.input(kDy, at);
  if (spec.activation != Activation::None)
    gradient = gradient * slopeAt(call, gatedWithResidual(call, at, t));
  if (spec.hasResidual(Side::After)) gradients.add(kDresidual, at, gradient);
  if (!spec.hasGate(Side::After)) return gradient;
  const Gated gate = gateAt(call, at);
  gradients.add(kDgate, at, rounded(gradient * (t * gate.slope)));
  return rounded(gradient * gate.value);
}
bool behindNeedsOutput(const Spec& spec) {
  return spec.activation != Activation::None || spec.hasGate(Side::After);
}

// Returns G from dm. `v` counts only if `modulate` has a scale.
Tracked gradientOfModulation(const Call& call, At at, Tracked dm, Tracked v, Gradients& gradients) {
  const auto& modulate = call.spec.modulate;
  if (!modulate) return dm;
  if (modulate->shift) gradients.add(kDmodShift, at, dm);
  if (!modulate->scale) return dm;
  gradients.add(kDmodScale, at, dm * v);
  return rounded(dm * modulationAt(call, at));
}

// Calls `visit(at, statistic)` for each element of each row that is present.
template <typename Visit>
void forEachPresent(const Call& call, Visit&& visit) {
  call.forEach([&](int64_t i, int64_t row, int64_t feature, int64_t k) {
    if (call.present(row)) visit(At{i, row, feature}, k);
  });
}

}  // namespace

Tracked factorOf(const Call& call, int64_t feature) {
  const Tracked scale = exact(call.given.scale[feature]);
  return call.spec.scaleOffset ? exact(call.settings.scaleOffset) + scale : scale;
}

Values outputValues(const Call& call, Values x0, const Values& r, const Values& shift) {
  Values m = std::move(x0);
  forEachPresent(call, [&](At at, int64_t k) {
    m[at.element] = modulated(call, at, affine(call, at.feature, m[at.element], r[k], shift[k]));
  });
  Values y = turned(call, std::move(m));
  forEachPresent(call, [&](At at, int64_t) { y[at.element] = output(call, at, y[at.element]); });
  return y;
}

Values gradientsOfAffine(const Call& call, const Values& x0, const Values& r, const Values& shift,
                         Gradients& gradients) {
  // What is not needed may lack its inputs, and stays empty.
  Values v, t;
  const auto valueAt = [](const Values& all, At at) { return all.empty() ? Tracked{} : all[at.element]; };
  if (call.spec.recomputesOutput()) {
    v = x0;
    forEachPresent(call, [&](At at, int64_t k) {
      v[at.element] = affine(call, at.feature, v[at.element], r[k], shift[k]);
    });
  }
  if (behindNeedsOutput(call.spec)) {
    t = v;
    forEachPresent(call, [&](At at, int64_t) { t[at.element] = modulated(call, at, t[at.element]); });
    t = turned(call, std::move(t));
  }
  Values g(x0.size());
  forEachPresent(
      call, [&](At at, int64_t) { g[at.element] = gradientBehind(call, at, valueAt(t, at), gradients); });
  g = turnedBack(call, std::move(g));
  forEachPresent(call, [&](At at, int64_t) {
    g[at.element] = gradientOfModulation(call, at, g[at.element], valueAt(v, at), gradients);
  });
  return g;
}

}  // namespace normc::reference
