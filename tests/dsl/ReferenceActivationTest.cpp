// Activations behind the affine: their values and slopes, that the backward is that of the same norm whose dy
// is dy psi'(o), and that the magnitudes cover the error of o.
#include <limits>
#include <numbers>

#include "dsl/ReferenceNumber.h"
#include "dsl/ReferenceParts.h"
#include "dsl/Tolerance.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr Activation kAll[] = {Activation::Relu,     Activation::Silu,    Activation::Gelu,
                               Activation::GeluTanh, Activation::Sigmoid, Activation::Tanh};

// A norm whose o is x, and whose dx is dy psi'(x).
Spec identity(Activation activation) {
  Spec spec = powerNorm();
  spec.backward = Backward::Frozen;
  spec.epsilon = 0;
  spec.scale = spec.bias = false;
  spec.activation = activation;
  return spec;
}

// psi and psi' at these points, with their magnitudes.
struct Points {
  Quantity value, slope;
};
Points pointsOf(Activation activation, const Vector& at, DType type = DType::F32) {
  Layer layer(identity(activation), {1, static_cast<int64_t>(at.size()), 1});
  layer.problem.data = layer.problem.params = type;
  const Quantity value = layer.forward(at).outputs.at("y");
  return {value, layer.backward(Vector(at.size(), 1)).outputs.at("dx")};
}

// The formulas of dsl/SPEC.md, as they stand there.
double formula(Activation activation, double t) {
  const double c = std::sqrt(2 / std::numbers::pi), sigma = 1 / (1 + std::exp(-t));
  switch (activation) {
    case Activation::None:
      break;
    case Activation::Relu:
      return std::max(t, 0.0);
    case Activation::Silu:
      return t * sigma;
    case Activation::Gelu:
      return t * (1 + std::erf(t / std::sqrt(2))) / 2;
    case Activation::GeluTanh:
      return t * (1 + std::tanh(c * (t + 0.044715 * t * t * t))) / 2;
    case Activation::Sigmoid:
      return sigma;
    case Activation::Tanh:
      return std::tanh(t);
  }
  return t;
}
double slopeFormula(Activation activation, double t) {
  const double c = std::sqrt(2 / std::numbers::pi), sigma = 1 / (1 + std::exp(-t));
  const double T = std::tanh(c * (t + 0.044715 * t * t * t));
  switch (activation) {
    case Activation::None:
      break;
    case Activation::Relu:
      return t > 0 ? 1 : 0;
    case Activation::Silu:
      return sigma * (1 + t * (1 - sigma));
    case Activation::Gelu:
      return (1 + std::erf(t / std::sqrt(2))) / 2 +
             t * std::exp(-t * t / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::GeluTanh:
      return (1 + T) / 2 + t * (1 - T * T) * c * (1 + 0.134145 * t * t) / 2;
    case Activation::Sigmoid:
      return sigma * (1 - sigma);
    case Activation::Tanh:
      return 1 - std::tanh(t) * std::tanh(t);
  }
  return 1;
}

Vector grid() {
  Vector out;
  for (int i = -1200; i <= 1200; ++i) out.push_back(i / 100.0);
  return out;
}

TEST(ReferenceActivation, IsItsFormula) {
  const Vector at = grid();
  for (Activation activation : kAll) {
    SCOPED_TRACE(static_cast<int>(activation));
    const Points points = pointsOf(activation, at);
    Vector value, slope;
    for (double t : at) value.push_back(formula(activation, t)), slope.push_back(slopeFormula(activation, t));
    expectNear(points.value.value, value, 1e-14);
    expectNear(points.slope.value, slope, 1e-13);
  }
}

TEST(ReferenceActivation, IsFiniteWhereItsArgumentIs) {
  const Vector at = {-1e300, -1e30, -800, -100, 0, 100, 800, 1e30, 1e300};
  for (Activation activation : kAll) {
    const Points points = pointsOf(activation, at);
    for (size_t i = 0; i < at.size(); ++i) {
      EXPECT_TRUE(std::isfinite(points.value.value[i])) << static_cast<int>(activation) << " of " << at[i];
      EXPECT_TRUE(std::isfinite(points.slope.value[i])) << static_cast<int>(activation) << " of " << at[i];
    }
  }
}

// Points at distances from a 64th to 8: the mean value theorem with the bounds of the magnitudes.
TEST(ReferenceActivation, MagnitudesCoverAnErrorOfTheArgument) {
  const Vector at = grid();
  for (Activation activation : kAll) {
    SCOPED_TRACE(static_cast<int>(activation));
    const Points points = pointsOf(activation, at);
    // Measures the growth of the magnitudes where o = x grows by 1 far away, where the terms stand still or
    // grow by 1 too.
    const auto ofBias = [&](double bias) {
      Spec spec = identity(activation);
      spec.bias = true;
      Layer layer(spec, {1, 1, 1});
      layer.problem.data = layer.problem.params = DType::F32;
      layer.call.bias = {bias};
      const double value = layer.forward({1 - bias}).outputs.at("y").magnitude[0];
      return std::pair(value, layer.backward({1}).outputs.at("dx").magnitude[0]);
    };
    // o = 1 with magnitudes that differ by 8.
    const auto [value, slope] = ofBias(1);
    const auto [wideValue, wideSlope] = ofBias(5);
    const double perValue = (wideValue - value) / 8, perSlope = (wideSlope - slope) / 8;
    for (size_t i = 0; i < at.size(); ++i) {
      for (size_t j = i + 1; j < at.size(); j += 7) {
        const double distance = at[j] - at[i], rounding = 1e-12;
        const double rise = std::abs(points.value.value[j] - points.value.value[i]);
        ASSERT_LE(rise, perValue * distance + rounding) << at[i] << " to " << at[j];
        if (activation == Activation::Relu) continue;
        const double turn = std::abs(points.slope.value[j] - points.slope.value[i]);
        ASSERT_LE(turn, perSlope * distance + rounding) << at[i] << " to " << at[j];
      }
    }
  }
}

// The absolute terms of the formulas: with larger ones the tolerance would excuse a wrong kernel.
reference::Point termsOf(Activation activation, double t) {
  const double c = std::sqrt(2 / std::numbers::pi), sigma = 1 / (1 + std::exp(-t)), T = std::tanh(t);
  const double erf = std::abs(std::erf(t / std::sqrt(2)));
  const double bent = std::tanh(c * (t + 0.044715 * t * t * t));
  switch (activation) {
    case Activation::None:
    case Activation::Relu:
      break;
    case Activation::Silu:
      return {std::abs(t) * sigma, sigma + sigma * std::abs(t) * (1 - sigma)};
    case Activation::Gelu:
      return {std::abs(t) * (1 + erf) / 2,
              (1 + erf) / 2 + std::abs(t) * std::exp(-t * t / 2) / std::sqrt(2 * std::numbers::pi)};
    case Activation::GeluTanh:
      return {std::abs(t) * (1 + std::abs(bent)) / 2,
              (1 + std::abs(bent)) / 2 + std::abs(t) * (1 - bent * bent) * c * (1 + 0.134145 * t * t) / 2};
    case Activation::Sigmoid:
      return {sigma, sigma * (1 - sigma)};
    case Activation::Tanh:
      return {std::abs(T), 1 + T * T};
  }
  return {0, 0};
}

TEST(ReferenceActivation, MagnitudesAreThoseOfItsTerms) {
  for (Activation activation : kAll) {
    SCOPED_TRACE(static_cast<int>(activation));
    for (double t : grid()) {
      const reference::Function function = reference::functionAt(activation, t);
      const reference::Point terms = termsOf(activation, t);
      EXPECT_NEAR(function.value.terms, terms.value, 1e-13 * std::max(1.0, std::abs(t))) << t;
      EXPECT_NEAR(function.slope.terms, terms.terms, 1e-12) << t;
    }
  }
}

TEST(ReferenceActivation, OfANormIsThatOfItsOutput) {
  for (Activation activation : kAll) {
    for (Spec spec : {layerNorm(), powerNorm(), batchRenorm(), unifiedNorm(2, 0)}) {
      Layer plain(spec, {1, 6, 4});
      spec.activation = activation;
      Layer layer(spec, {1, 6, 4});
      layer.call.scale = plain.call.scale = {1, 2, -0.5, 3};
      const Vector x = random(24, 1, 0.5);
      Vector want = values(plain.forward(x), "y");
      for (double& each : want) each = formula(activation, each);
      expectNear(values(layer.forward(x), "y"), want, 1e-14);
      EXPECT_EQ(layer.call.saved, plain.call.saved);
      EXPECT_EQ(layer.call.state, plain.call.state);
      want = values(plain.infer(x), "y");
      for (double& each : want) each = formula(activation, each);
      expectNear(values(layer.infer(x), "y"), want, 1e-14);
    }
  }
}

// dscale, dbias, nu, windows: all of them see dy psi'(o), and o has the r and shift of the forward.
TEST(ReferenceActivation, ItsBackwardIsThatOfTheSlopedGradient) {
  constexpr Extents extents{2, 3, 4};
  constexpr int64_t count = 24;
  std::vector<Spec> specs = {layerNorm(), batchNorm(),   powerNorm(),      powerNormReleased(2),
                             mabn(2, 1),  batchRenorm(), unifiedNorm(2, 1)};
  for (uint64_t seed = 0; seed < 40; ++seed) specs.push_back(randomSpec(seed));
  for (size_t i = 0; i < specs.size(); ++i) {
    Spec spec = specs[i];
    spec.activation = Activation::None;
    Layer plain(spec, extents, true);
    spec.activation = kAll[i % std::size(kAll)];
    Layer layer(spec, extents, true);
    for (Layer* each : {&layer, &plain}) {
      each->problem.bindings["heads"] = 2;
      each->call.state = initialState(each->problem, extents);
      if (spec.scale) each->call.scale = {1, 2, -0.5, 3};
      if (spec.bias) each->call.bias = {0, 0.5, -1, 0.25};
    }
    for (uint64_t step = 1; step < 6; ++step) {
      SCOPED_TRACE(spec.name + " " + std::to_string(i) + ", step " + std::to_string(step));
      layer.call.mask = plain.call.mask =
          step == 3 ? std::vector<uint8_t>(6, 0) : hardMask(HardMask::Scattered, extents, step + 10 * i);
      const Vector x = random(count, 10 * step, 0.5), dy = random(count, 10 * step + 1);
      const Vector o = values(plain.forward(x), "y");
      layer.forward(x);
      Vector sloped(count);
      for (int64_t j = 0; j < count; ++j) sloped[j] = dy[j] * slopeFormula(spec.activation, o[j]);
      const ReferenceResult got = layer.backward(dy), want = plain.backward(sloped);
      for (const auto& [name, quantity] : want.outputs) expectNear(values(got, name), quantity.value, 1e-11);
    }
  }
}

// Within the error of o either slope of relu is right, and nowhere else.
TEST(ReferenceActivation, EitherSlopeIsRightAtTheCornerOfReluAlone) {
  for (DType type : {DType::F32, DType::F64}) {
    Spec spec = identity(Activation::Relu);
    spec.bias = true;
    const double error = (type == DType::F64 ? 0x1p-28 : 1) * reference::kUnit * 200;
    const Vector near = {100, 100 + error / 2, 100 - error / 2}, far = {100 + 2 * error, 100 - 2 * error};
    for (const Vector& x : {near, far}) {
      Layer layer(spec, {1, static_cast<int64_t>(x.size()), 1});
      layer.problem.data = layer.problem.params = type;
      layer.call.bias = {-100};
      layer.forward(x);
      const ReferenceResult backward = layer.backward(Vector(x.size(), -3));
      for (const char* output : {"dx", "dbias"}) {
        const Quantity& want = backward.outputs.at(output);
        const Tolerance tolerance = toleranceOf(layer.problem, output, layer.call.extents);
        for (double wrong : {-3.0, 3.0}) {
          Vector got = want.value;
          const double other = got[0] == 0 ? -3 : 0;
          got[0] = output == std::string("dx") ? other : got[0] + wrong;
          EXPECT_EQ(compare(want, got, tolerance).ok, x == near) << output << " of " << name(type);
        }
      }
    }
  }
  // An o that is nothing but zeros has one slope: 0.
  const Quantity slope = pointsOf(Activation::Relu, {0}).slope;
  EXPECT_EQ(slope.value[0], 0);
  EXPECT_EQ(slope.magnitude[0], 0);
}

// relu of NaN has the slope 0, so a sum with that element is as near as the sum of the others.
TEST(ReferenceActivation, ANaNTakesNothingFromTheMagnitudeOfSums) {
  Spec spec = identity(Activation::Relu);
  spec.bias = true;
  Layer layer(spec, {1, 3, 1});
  layer.call.bias = {0};
  layer.forward({std::numeric_limits<double>::quiet_NaN(), 2, 3});
  const Quantity dbias = layer.backward({5, 7, -6}).outputs.at("dbias");
  EXPECT_EQ(dbias.value[0], 1);
  EXPECT_NEAR(dbias.magnitude[0], 13, 0.01);
}

// All that follows from the other slope is right too: the sums, and dx of the other elements.
TEST(ReferenceActivation, TheOtherSlopeAtTheCornerReachesAllThatItEnters) {
  for (Spec spec : {layerNorm(), batchNorm()}) {
    Layer plain(spec, {1, 3, 3});
    spec.activation = Activation::Relu;
    Layer layer(spec, {1, 3, 3});
    for (Layer* each : {&layer, &plain}) each->problem.data = each->problem.params = DType::F32;
    const Vector x = {4, 5, 6, 5, 1, 9, 6, 3, 3};  // row 0 and column 0 have their mean in the middle
    const size_t corner = spec.perRow() ? 1 : 3;
    const Vector o = values(plain.forward(x), "y"), dy = random(9, 1);
    ASSERT_EQ(o[corner], 0);
    layer.forward(x);
    const ReferenceResult want = layer.backward(dy);
    Vector sloped = dy;
    for (size_t i = 0; i < 9; ++i) sloped[i] *= o[i] > 0 || i == corner;
    const ReferenceResult got = plain.backward(sloped);
    for (const char* output : {"dx", "dscale", "dbias"}) {
      const Tolerance tolerance = toleranceOf(layer.problem, output, layer.call.extents);
      const Agreement agreement = compare(want.outputs.at(output), values(got, output), tolerance);
      EXPECT_TRUE(agreement.ok) << spec.name << ", " << output << ": " << agreement.text;
      if (output == std::string("dscale")) continue;  // x0 is 0 at the corner
      EXPECT_GT(agreement.worstRatio, 0.01) << spec.name << ", " << output << ": the slope enters";
    }
  }
}

// One infinity leaves the sum of the other slopes the bound that it has without it.
TEST(ReferenceActivation, OfAnInfinityIsExact) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (Activation activation : {Activation::Relu, Activation::Sigmoid, Activation::Tanh}) {
    Spec spec = identity(activation);
    spec.bias = true;
    Layer layer(spec, {1, 3, 1});
    layer.problem.data = layer.problem.params = DType::F32;
    const Quantity y = layer.forward({-infinity, 1, infinity}).outputs.at("y");
    const double top = activation == Activation::Relu ? infinity : 1;
    EXPECT_EQ(y.value[0], activation == Activation::Tanh ? -1 : 0);
    EXPECT_EQ(y.value[2], top);
    const Quantity dbias = layer.backward({1, 1, 1}).outputs.at("dbias");
    EXPECT_TRUE(std::isfinite(dbias.value[0]));
    EXPECT_LT(dbias.magnitude[0], 10);
  }
}

TEST(ReferenceActivation, OfNanIsNan) {
  for (Activation activation : kAll)
    EXPECT_TRUE(std::isnan(pointsOf(activation, {std::nan("")}).value.value[0]))
        << static_cast<int>(activation);
}

}  // namespace
}  // namespace normc
