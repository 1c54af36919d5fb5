// The functions of gates and activations: value, slope, and what a kernel's rounding of them is judged by.
#include <cmath>
#include <numbers>

#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

// Neither the root nor 1 - sigmoid(t) = sigmoid(-t) overflows or cancels.
double sigmoid(double t) {
  const double e = std::exp(-std::abs(t));
  return (t < 0 ? e : 1) / (1 + e);
}

Function relu(double t) {
  const double slope = t > 0 ? 1 : 0;
  return {{t <= 0 ? 0 : t, 0}, {slope, 0}, 1, 0};  // NaN stays NaN
}

Function silu(double t) {
  const double p = sigmoid(t), q = sigmoid(-t);
  return {{t * p, std::abs(t) * p}, {p * (1 + t * q), p * (1 + std::abs(t) * q)}, 1.1, 0.5};
}

Function gelu(double t) {
  const double below = std::erfc(-t * std::numbers::sqrt2 / 2) / 2;
  const double terms = (1 + std::abs(std::erf(t * std::numbers::sqrt2 / 2))) / 2;
  const double density = std::exp(-t * t / 2) * std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;
  return {
      {t * below, std::abs(t) * terms}, {below + t * density, terms + std::abs(t) * density}, 1.129, 0.798};
}

// (1 + tanh z) / 2 = sigmoid(2 z), and 1 - tanh(z)^2 = 4 sigmoid(2 z) sigmoid(-2 z).
Function geluTanh(double t) {
  constexpr double c = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double z = c * (t + 0.044715 * t * t * t), p = sigmoid(2 * z), q = sigmoid(-2 * z);
  const double terms = (1 + std::abs(std::tanh(z))) / 2;
  const double bent = 2 * c * p * q * t, rest = bent + 0.134145 * bent * t * t;
  return {{t * p, std::abs(t) * terms}, {p + rest, terms + std::abs(rest)}, 1.129, 0.798};
}

Function logistic(double t) {
  const double p = sigmoid(t), slope = p * sigmoid(-t);
  return {{p, p}, {slope, slope}, 0.25, 0.0963};
}

Function hyperbolicTangent(double t) {
  const double value = std::tanh(t), slope = 4 * sigmoid(2 * t) * sigmoid(-2 * t);
  return {{value, std::abs(value)}, {slope, 1 + value * value}, 1, 0.77};
}

}  // namespace

Function functionAt(Activation activation, double t) {
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

Gated gateAt(const Call& call, At at) {
  const Tracked z = call.input(kGate, at);
  const auto [value, slope, largestSlope, largestCurvature] = functionAt(call.spec.gate->function, z.value);
  const auto tracked = [](Point p) { return flushed({p.value, std::abs(p.value) + p.terms}); };
  return {tracked(value), tracked(slope)};
}

}  // namespace normc::reference
