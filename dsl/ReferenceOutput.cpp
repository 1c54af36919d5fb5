// From x0 to y, and from the gradient of y to that of the affine.
#include <numbers>

#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

// A function at one point. The terms are the sum of the absolute terms of its formula: its rounding.
struct Point {
  double value, terms;
};

// psi and psi' at one point, with bounds of |psi'| and |psi''| over all points, rounded up. relu has its
// corner in place of a bound of |psi''|.
struct Psi {
  Point value, slope;
  double largestSlope, largestCurvature;
};

// Neither the root nor 1 - sigmoid(t) = sigmoid(-t) overflows or cancels.
double sigmoid(double t) {
  const double e = std::exp(-std::abs(t));
  return (t < 0 ? e : 1) / (1 + e);
}

Psi relu(double t) {
  const double slope = t > 0 ? 1 : 0;
  return {{t <= 0 ? 0 : t, 0}, {slope, 0}, 1, 0};  // NaN stays NaN
}

Psi silu(double t) {
  const double p = sigmoid(t), q = sigmoid(-t);
  return {{t * p, std::abs(t) * p}, {p * (1 + t * q), p * (1 + std::abs(t) * q)}, 1.1, 0.5};
}

Psi gelu(double t) {
  const double below = std::erfc(-t * std::numbers::sqrt2 / 2) / 2;
  const double terms = (1 + std::abs(std::erf(t * std::numbers::sqrt2 / 2))) / 2;
  const double density = std::exp(-t * t / 2) * std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;
  return {
      {t * below, std::abs(t) * terms}, {below + t * density, terms + std::abs(t) * density}, 1.129, 0.798};
}

// (1 + tanh z) / 2 = sigmoid(2 z), and 1 - tanh(z)^2 = 4 sigmoid(2 z) sigmoid(-2 z).
Psi geluTanh(double t) {
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double z = c * (t + 0.044715 * t * t * t), p = sigmoid(2 * z), q = sigmoid(-2 * z);
  const double terms = (1 + std::abs(std::tanh(z))) / 2;
  const double bent = 2 * c * p * q * t, rest = bent + 0.134145 * bent * t * t;
  return {{t * p, std::abs(t) * terms}, {p + rest, terms + std::abs(rest)}, 1.129, 0.798};
}

Psi logistic(double t) {
  const double p = sigmoid(t), slope = p * sigmoid(-t);
  return {{p, p}, {slope, slope}, 0.25, 0.0963};
}

Psi hyperbolicTangent(double t) {
  const double value = std::tanh(t), slope = 4 * sigmoid(2 * t) * sigmoid(-2 * t);
  return {{value, std::abs(value)}, {slope, 1 + value * value}, 1, 0.77};
}

Psi psi(Activation activation, double t) {
  switch (activation) {
    case Activation::None:
      break;
    case Activation::Relu:
      return relu(t);
    case Activation::Silu:
      return silu(t);
    case Activation::Gelu:
      return gelu(t);
    case Activation::GeluTanh:
      return geluTanh(t);
    case Activation::Sigmoid:
      return logistic(t);
    case Activation::Tanh:
      return hyperbolicTangent(t);
  }
  return {{t, 0}, {1, 0}, 1, 0};
}

// Returns the output of the affine.
Tracked affine(const Call& call, int64_t feature, Tracked x0, Tracked r, Tracked shift) {
  const Spec& spec = call.spec;
  Tracked value = x0;
  if (spec.renorm.kind != Renorm::None && spec.renorm.forward) value = r * value + shift;
  if (spec.scale) value = factorOf(call, feature) * value;
  if (spec.bias) value = value + exact(call.given.bias[feature]);
  return value;
}

// Returns the magnitude of the errors of o. An infinite o is exact: psi and its slope stand still there.
double errorsOf(Tracked o) { return std::isinf(o.value) ? 0 : o.magnitude; }

}  // namespace

Tracked factorOf(const Call& call, int64_t feature) {
  const Tracked scale = exact(call.given.scale[feature]);
  return call.spec.scaleOffset ? exact(call.settings.scaleOffset) + scale : scale;
}

// Tolerance.h derives the magnitudes.
Tracked output(const Call& call, int64_t feature, Tracked x0, Tracked r, Tracked shift) {
  const Tracked o = affine(call, feature, x0, r, shift);
  if (call.spec.activation == Activation::None) return o;
  const Psi at = psi(call.spec.activation, o.value);
  return flushed({at.value.value, at.largestSlope * errorsOf(o) + at.value.terms});
}

Tracked gradientOfAffine(const Call& call, double dy, int64_t feature, Tracked x0, Tracked r, Tracked shift) {
  if (call.spec.activation == Activation::None) return exact(dy);
  const Tracked o = affine(call, feature, x0, r, shift);
  const Psi at = psi(call.spec.activation, o.value);
  const double slope = at.slope.value, errors = errorsOf(o);
  double magnitude = std::abs(slope) + at.slope.terms + at.largestCurvature * errors;
  // The corner of relu: either slope is right, an error of 1. The unit is what the tolerance grants.
  const double unit = call.problem.statistics() == DType::F64 ? kUnit * 0x1p-28 : kUnit;
  const bool corner = errors > 0 && std::abs(o.value) <= unit * errors;
  if (call.spec.activation == Activation::Relu && corner) magnitude += 1 / unit;
  return exact(dy) * Tracked{slope, magnitude};
}

}  // namespace normc::reference
