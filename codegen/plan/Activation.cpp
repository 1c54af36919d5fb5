#include "codegen/plan/Activation.h"

#include <numbers>

namespace normc::codegen {
namespace {

using Series = llvm::ArrayRef<double>;

bool isWide(Num t) { return t.value.getType().isF64(); }

/// Returns c[0] + c[1] x + c[2] x^2 + ...
Num polynomial(Num x, Series c) {
  Num sum = x * c.back() + c[c.size() - 2];
  for (double lower : llvm::reverse(c.drop_back(2))) sum = sum * x + lower;
  return sum;
}

//===-- Sigmoid and what is made of it ----------------------------------------===//

/// sigmoid(u) = up / (1 + e) and sigmoid(u) (1 - sigmoid(u)) = e / (1 + e)^2.
struct Logistic {
  Num e;   ///< e^-|u|
  Num up;  ///< 1 for u > 0, else e
};
Logistic logistic(KernelBuilder& k, Num u) {
  Num e = approximateExp(-abs(u));
  return {e, select(u > 0.0, k.constant(1), e)};
}

/// Returns t sigmoid(u).
Num gated(KernelBuilder& k, Num t, Num u) {
  auto [e, up] = logistic(k, u);
  return approximateQuotient(t * up, e + 1.0);
}

/// Returns the derivative of t sigmoid(u), of which `du` is that of u. The factor that vanishes for large |t|
/// comes before t, so that no product overflows.
Num gatedSlope(KernelBuilder& k, Num t, Num u, Num du) {
  auto [e, up] = logistic(k, u);
  Num reciprocal = approximateQuotient(k.constant(1), e + 1.0), fall = e * reciprocal;
  if (du) fall = fall * du;
  return reciprocal * (t * fall + up);
}

// gelu_tanh is t sigmoid(2 c (t + 0.044715 t^3)) with c = sqrt(2 / pi).
constexpr double kLinear = 1.5957691216057308, kCubic = kLinear * 0.044715;
Num tanhArgument(Num t) { return t * (t * t * kCubic + kLinear); }

/// Returns tanh(t). For small |t| an odd polynomial, since 1 - e^-2|t| would cancel: relative error 2^-29 in
/// f32, 2^-58.9 in f64.
Num hyperbolicTangent(KernelBuilder& k, Num t) {
  static constexpr double kF32[] = {1, -0.33333298563957214, 0.13331207633018494, -0.05356115475296974,
                                    0.018741337582468987};
  static constexpr double kF64[] = {1,
                                    -0.33333333333333276,
                                    0.1333333333331235,
                                    -0.053968253947022475,
                                    0.021869487552841505,
                                    -0.008863210507566862,
                                    0.0035917484972001483,
                                    -0.001452301114948645,
                                    0.000570088661720574,
                                    -0.00017529916656089904};
  Num distance = abs(t), e = approximateExp(distance * -2.0);
  Num far = approximateQuotient(1.0 - e, e + 1.0);
  Num near = t * polynomial(t * t, isWide(t) ? Series(kF64) : Series(kF32));
  return select(distance <= k.constant(0.4), near, select(t > 0.0, far, -far));
}

//===-- The normal distribution -----------------------------------------------===//

/// Phi(-|t|) = e * numerator / denominator.
struct NormalTail {
  Num e;  ///< e^(-t^2/2)
  Num numerator, denominator;
};

/// The quotient is minimax for Phi(-a) e^(a^2/2) up to where e is 0: relative error 2^-26.4 in f32, 2^-53.1
/// in f64. All coefficients are positive, so no sum cancels. The rounding of a^2 would cost e a^2/4 units of
/// its last place; the first order of it is put back.
NormalTail normalTail(KernelBuilder& k, Num t) {
  static constexpr double kUpper32[] = {0.5, 0.435569555, 0.18122077, 0.0399553068, 0.00401593465};
  static constexpr double kLower32[] = {1, 1.66902399, 1.19412601, 0.464153349, 0.100160532, 0.0100663109};
  static constexpr double kUpper64[] = {0.5,
                                        0.7740325828550031,
                                        0.5928281288731025,
                                        0.28846310282464804,
                                        0.09730932463692003,
                                        0.02350334807599821,
                                        0.004064040645389252,
                                        0.00048676562035503525,
                                        3.692281803502341e-05,
                                        1.370964270590715e-06};
  static constexpr double kLower64[] = {1,
                                        2.345949726512862,
                                        2.557453324950825,
                                        1.7104653856089174,
                                        0.7795782655231647,
                                        0.2539202278021577,
                                        0.060127424760489094,
                                        0.010279590958582963,
                                        0.001223576965122368,
                                        9.255177966327296e-05,
                                        3.436497804183213e-06};
  // Beyond 38 e is 0, and an infinity would give NaN.
  Num a = min(k.constant(38), abs(t)), square = a * a, rest = fma(a, a, -square);
  Num rough = approximateExp(square * -0.5);
  return {rough * (rest * -0.5) + rough, polynomial(a, isWide(t) ? Series(kUpper64) : Series(kUpper32)),
          polynomial(a, isWide(t) ? Series(kLower64) : Series(kLower32))};
}

}  // namespace

Num activated(KernelBuilder& k, Activation activation, Num t) {
  switch (activation) {
    case Activation::None:
      return t;
    case Activation::Relu:
      return max(k.constant(0), t);
    case Activation::Silu:
      return gated(k, t, t);
    case Activation::Gelu: {
      auto [e, numerator, denominator] = normalTail(k, t);
      Num tail = approximateQuotient(e * numerator, denominator);
      return t * select(t > 0.0, 1.0 - tail, tail);
    }
    case Activation::GeluTanh:
      return gated(k, t, tanhArgument(t));
    case Activation::Sigmoid: {
      auto [e, up] = logistic(k, t);
      return approximateQuotient(up, e + 1.0);
    }
    case Activation::Tanh:
      return hyperbolicTangent(k, t);
  }
  llvm_unreachable("activation");
}

Num activationSlope(KernelBuilder& k, Activation activation, Num t) {
  switch (activation) {
    case Activation::None:
      return k.constant(1);
    case Activation::Relu:
      return select(t > 0.0, k.constant(1), k.constant(0));
    case Activation::Silu:
      return gatedSlope(k, t, t, {});
    case Activation::Gelu: {
      constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
      auto [e, numerator, denominator] = normalTail(k, t);
      // Phi(t) + t phi(t) of -|t|; that of |t| is 1 minus it.
      Num left = e * (approximateQuotient(numerator, denominator) - abs(t) * kDensity);
      return select(t > 0.0, 1.0 - left, left);
    }
    case Activation::GeluTanh: {
      // Beyond 22 the derivative is 0 or 1.
      Num a = min(k.constant(22), abs(t));
      return gatedSlope(k, t, tanhArgument(t), a * a * (3 * kCubic) + kLinear);
    }
    case Activation::Sigmoid: {
      Num e = approximateExp(-abs(t)), sum = e + 1.0;
      return approximateQuotient(e, sum * sum);
    }
    case Activation::Tanh: {
      Num e = approximateExp(abs(t) * -2.0), sum = e + 1.0;
      return approximateQuotient(e * 4.0, sum * sum);
    }
  }
  llvm_unreachable("activation");
}

}  // namespace normc::codegen
