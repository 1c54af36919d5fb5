// Holds the expected values of activations: the formulas in long double, the inputs, and the unit of an
// error.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "codegen/plan/Activation.h"

namespace normc::codegen {

/// A function of one number, as the compiler writes it and exactly.
struct Function {
  struct Exact {
    long double value;
    long double scale;  ///< what errors are relative to: the largest of its terms, times its condition in the
                        ///< argument of e^x
  };
  std::string name;
  std::function<Num(KernelBuilder&, Num)> emit;
  std::function<Exact(long double)> exact;
  /// The largest error that is allowed, in units of the last place: the sum of what each rounding may
  /// contribute, at most one unit, and two for e^x.
  double units;
  bool approximates = true;  ///< where the target does
};

inline long double logistic(long double u) { return 1 / (1 + std::exp(-u)); }
inline long double normal(long double t) { return std::erfc(-t / std::sqrt(2.0L)) / 2; }

/// e^t, e^-|t|, and the value and the derivative of each activation.
inline const std::vector<Function>& activationFunctions() {
  using Exact = Function::Exact;
  static const long double c = std::sqrt(8 / std::acos(-1.0L)), density = 1 / std::sqrt(2 * std::acos(-1.0L));
  static const auto plain = [](long double v) { return Exact{v, v}; };
  static const auto sum = [](long double a, long double b) { return Exact{a + b, std::max(a, std::abs(b))}; };
  static const auto argument = [](long double t) { return c * (t + 0.044715L * t * t * t); };
  static const auto value = [](Activation a) {
    return [a](KernelBuilder& k, Num t) { return activated(k, a, t); };
  };
  static const auto slope = [](Activation a) {
    return [a](KernelBuilder& k, Num t) { return activationSlope(k, a, t); };
  };
  static const std::vector<Function> list{
      {"exp", [](KernelBuilder&, Num t) { return exp(t); }, [](long double t) { return plain(std::exp(t)); },
       1, false},
      {"exp of -|t|", [](KernelBuilder&, Num t) { return approximateExp(-abs(t)); },
       [](long double t) { return plain(std::exp(-std::abs(t))); }, 1},
      {"relu", value(Activation::Relu), [](long double t) { return plain(t < 0 ? 0 : t); }, 0, false},
      {"relu'", slope(Activation::Relu), [](long double t) { return plain(t > 0 ? 1 : 0); }, 0, false},
      {"sigmoid", value(Activation::Sigmoid), [](long double t) { return plain(logistic(t)); }, 4},
      {"sigmoid'", slope(Activation::Sigmoid),
       [](long double t) { return plain(logistic(t) * logistic(-t)); }, 6},
      {"silu", value(Activation::Silu), [](long double t) { return plain(t * logistic(t)); }, 5},
      {"silu'", slope(Activation::Silu),
       [](long double t) { return sum(logistic(t), t * (logistic(t) * logistic(-t))); }, 6},
      {"tanh", value(Activation::Tanh), [](long double t) { return plain(std::tanh(t)); }, 4},
      {"tanh'", slope(Activation::Tanh),
       [](long double t) { return plain(4 * logistic(2 * t) * logistic(-2 * t)); }, 6},
      {"gelu", value(Activation::Gelu), [](long double t) { return plain(t * normal(t)); }, 10},
      {"gelu'", slope(Activation::Gelu),
       [](long double t) { return sum(normal(t), t * (density * std::exp(-t * t / 2))); }, 9},
      {"gelu_tanh", value(Activation::GeluTanh),
       [](long double t) {
         const long double u = argument(t), v = t * logistic(u);
         return Exact{v, v * (1 + std::abs(u) * logistic(-u))};
       },
       5},
      {"gelu_tanh'", slope(Activation::GeluTanh),
       [](long double t) {
         const long double u = argument(t), fall = logistic(u) * logistic(-u);
         const long double du = c * (1 + 0.134145L * t * t);
         const long double bend = std::isinf(t) ? t * fall : t * (fall * du), size = 1 + std::abs(u);
         const long double scale = logistic(u) * (1 + std::abs(u) * logistic(-u));
         return Exact{logistic(u) + bend, std::max(scale, std::abs(bend) * size)};
       },
       6},
  };
  return list;
}

/// Both zeros, infinities, NaN, every binade, and the range where the functions bend in small steps.
template <typename T>
std::vector<T> activationInputs(int steps) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> t{0, Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::denorm_min()};
  for (int e = Limits::min_exponent - 1; e < Limits::max_exponent; ++e)
    for (double m : {1.0, 1.1, 1.4142135, 1.7, 1.9999}) t.push_back(std::ldexp(T(m), e));
  for (T end : {T(1), T(16), T(-std::log(Limits::min())) + 3})
    for (int i = 1; i <= steps; ++i) t.push_back(end * T(i) / T(steps));
  for (size_t i = 0, n = t.size(); i < n; ++i) t.push_back(-t[i]);
  return t;
}

/// Returns the error of `got` in units of the last place of what is exact, or infinity if only one of them is
/// NaN or infinite. Results below 2^-96 (f64: 2^-960) are compared as if they were as large: e^x is 0 where
/// it would be subnormal.
template <typename T>
double errorOf(const Function& f, T t, T got) {
  const auto [exact, scale] = f.exact(t);
  constexpr double none = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : none;
  if (std::isinf(T(exact)) || std::isinf(got)) return T(exact) == got ? 0 : none;
  const int exponent =
      std::max(scale == 0 ? -10000 : std::ilogb(std::abs(scale)), sizeof(T) == 4 ? -96 : -960);
  return double(std::abs(got - exact) / std::ldexp(1.0L, exponent + 1 - std::numeric_limits<T>::digits));
}

/// Expects every error to be within the function's limit, and records the largest. `further` units are
/// allowed to functions that the target approximates.
template <typename T>
void expectAccurate(const Function& f, const std::vector<T>& inputs, const T* results, double further = 0) {
  double worst = 0;
  T at = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (double e = errorOf(f, inputs[i], results[i]); e > worst) worst = e, at = inputs[i];
  EXPECT_LE(worst, f.units + (f.approximates ? further : 0)) << f.name << " of " << at;
  testing::Test::RecordProperty(f.name + (sizeof(T) == 4 ? " f32" : " f64"), std::to_string(worst));
}

}  // namespace normc::codegen
