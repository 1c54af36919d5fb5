// Is the tolerance fair? Honest f32 arithmetic must pass on every hard input,
// with denormals kept or flushed, and the classic mistakes must not.
#include "dsl/ReferenceNumber.h"
#include "dsl/Tolerance.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr Extents kExtents{1, 67, 40};

// A float whose operations flush denormals, inputs and results (FTZ and DAZ).
struct Flushing {
  float value = 0;
  Flushing(double v = 0) : value(flush(static_cast<float>(v))) {}
  static float flush(float v) { return std::abs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }
  friend Flushing operator+(Flushing a, Flushing b) { return {a.value + b.value}; }
  friend Flushing operator-(Flushing a, Flushing b) { return {a.value - b.value}; }
  friend Flushing operator*(Flushing a, Flushing b) { return {a.value * b.value}; }
  friend Flushing operator/(Flushing a, Flushing b) { return {a.value / b.value}; }
  explicit operator double() const { return value; }
};
float root(float v) { return std::sqrt(v); }
Flushing root(Flushing v) { return {std::sqrt(v.value)}; }
float plain(float v) { return v; }
float plain(Flushing v) { return v.value; }

// psi and psi' in floats, written as a kernel would; the functions of one float are those of the library.
template <typename T>
std::pair<T, T> activated(Activation activation, T t) {
  const auto of = [t](float (*function)(float), T factor) { return T(function(plain(factor * t))); };
  const T one = 1, half = 0.5, p = one / (one + of(std::exp, T(-1)));
  switch (activation) {
    case Activation::None:
      break;
    case Activation::Relu:
      return {plain(t) > 0 || std::isnan(plain(t)) ? t : T(0), plain(t) > 0 ? T(1) : T(0)};
    case Activation::Silu:
      return {t * p, p * (one + t * (one - p))};
    case Activation::Gelu: {
      const T below = half * (one + of(std::erf, T(M_SQRT1_2)));
      return {t * below, below + t * T(std::exp(plain(T(-0.5) * t * t))) * T(M_2_SQRTPI / M_SQRT2 / 2)};
    }
    case Activation::GeluTanh: {
      const T c = M_2_SQRTPI / M_SQRT2, tanh = std::tanh(plain(c * (t + T(0.044715) * t * t * t)));
      const T bent = half * c * (one - tanh * tanh) * t;
      return {half * t * (one + tanh), half * (one + tanh) + (bent + T(0.134145) * bent * t * t)};
    }
    case Activation::Sigmoid:
      return {p, p * (one - p)};
    case Activation::Tanh: {
      const T tanh = std::tanh(plain(t));
      return {tanh, one - tanh * tanh};
    }
  }
  return {t, one};
}

// A sum in eight lanes, as a vector unit makes it.
template <typename T>
T sumOf(const std::vector<T>& terms) {
  T lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < terms.size(); ++i) lane[i % 8] = lane[i % 8] + terms[i];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// OtherGelu: one for the other. OneSlope: 1 for psi'.
enum class Mistake { None, OnePassVariance, WrongCount, MissingTerm, OtherGelu, OneSlope };

// Where products with x0 = (x - mean) s get their s: in each product, or behind the sum over rows.
enum class Scaled { Products, Sums };

template <typename T>
struct Outputs {
  std::vector<T> y, dx, dscale, dbias, mean, rstd;
};

// Both directions of a norm that centres or not, over rows or columns, with
// epsilon 1e-5: resident two-pass, the variance corrected by what is left of the mean.
template <typename T>
Outputs<T> kernel(const Spec& spec, const Layer& layer, const Vector& xs, const Vector& dys, Mistake mistake,
                  Scaled scaled) {
  const int64_t rows = kExtents.rows, features = kExtents.features;
  const bool columns = spec.perFeature(), centred = spec.center == Center::Current;
  const bool late = columns && scaled == Scaled::Sums;
  const int64_t statistics = columns ? features : rows, length = columns ? rows : features;
  const auto at = [&](int64_t k, int64_t j) { return columns ? j * features + k : k * features + j; };
  const T n = static_cast<T>(static_cast<double>(length));

  Outputs<T> out;
  out.y.resize(xs.size());
  out.dx.resize(xs.size());
  std::vector<std::vector<T>> dscale(features), dbias(features);
  Activation activation = spec.activation;
  if (mistake == Mistake::OtherGelu)
    activation = activation == Activation::Gelu ? Activation::GeluTanh : Activation::Gelu;
  for (int64_t k = 0; k < statistics; ++k) {
    std::vector<T> x, g, squares, deviations, h, hx0;
    for (int64_t j = 0; j < length; ++j) {
      const int64_t i = at(k, j);
      x.push_back(static_cast<T>(xs[i]));
      g.push_back(static_cast<T>(dys[i]));
    }
    T mean = centred ? sumOf(x) / n : T(0);
    if (mistake == Mistake::WrongCount) mean = sumOf(x) / T(static_cast<double>(length - 1));
    for (T each : x) {
      deviations.push_back(each - mean);
      squares.push_back((each - mean) * (each - mean));
    }
    const T left = centred ? sumOf(deviations) / n : T(0);
    T v = sumOf(squares) / n - left * left;
    if (mistake == Mistake::OnePassVariance) {
      for (size_t j = 0; j < x.size(); ++j) squares[j] = x[j] * x[j];
      v = sumOf(squares) / n - mean * mean;
    }
    T s = T(1) / root(v + T(1e-5));
    if (spec.divideBy == DivideBy::Running) s = T(1) / root(T(layer.state("psi2", k)) + T(1e-5));
    std::vector<T> x0;
    for (int64_t j = 0; j < length; ++j) {
      x0.push_back((x[j] - mean) * s);
      const int64_t feature = at(k, j) % features;
      const T scale = layer.call.scale[feature];
      const auto [y, slope] = activated(activation, scale * x0[j] + T(layer.call.bias[feature]));
      out.y[at(k, j)] = y;
      if (mistake != Mistake::OneSlope) g[j] = g[j] * slope;
      h.push_back(scale * g[j]);
      dbias[feature].push_back(g[j]);
      const T factor = late ? x[j] - mean : x0[j];
      hx0.push_back(h[j] * factor);
      dscale[feature].push_back(g[j] * factor);
    }
    const T meanH = centred ? sumOf(h) / n : T(0);
    T slope = (late ? sumOf(hx0) * s : sumOf(hx0)) / n;
    if (spec.divideBy == DivideBy::Running) slope = T(layer.state("nu", k));
    if (mistake == Mistake::MissingTerm) slope = T(0);
    for (int64_t j = 0; j < length; ++j) out.dx[at(k, j)] = s * (h[j] - meanH - x0[j] * slope);
    out.mean.push_back(mean);
    out.rstd.push_back(s);
  }
  for (int64_t feature = 0; feature < features; ++feature) {
    const T sum = sumOf(dscale[feature]);
    out.dscale.push_back(late ? sum * out.rstd[feature] : sum);
  }
  for (const std::vector<T>& terms : dbias) out.dbias.push_back(sumOf(terms));
  return out;
}

template <typename T>
Vector doubles(const std::vector<T>& values) {
  Vector out;
  for (const T& each : values) out.push_back(static_cast<double>(each));
  return out;
}

// Whose saved statistics the reference's backward is given.
enum class Saved { Kernel, Reference };

// The outputs that disagree, each with its worst element.
template <typename T>
std::string disagreements(const Spec& spec, HardInput input, Mistake mistake = Mistake::None,
                          Saved backwardFrom = Saved::Kernel, Scaled scaled = Scaled::Products,
                          double sizeOfDy = 1) {
  Layer layer(spec, kExtents);
  layer.problem.data = layer.problem.params = DType::F32;
  layer.call.scale = normalValues(kExtents.features, DType::F32, 1, 1);
  layer.call.bias = normalValues(kExtents.features, DType::F32, 2);
  if (spec.divideBy == DivideBy::Running)
    layer.call.state["nu"] = normalValues(kExtents.features, DType::F32, 3);
  const Layer before = layer;
  const Vector x = hardInput(input, kExtents, DType::F32);
  Vector dy = hardInput(HardInput::Normal, kExtents, DType::F32, 9);
  for (double& each : dy) each = round(each * sizeOfDy, DType::F32);
  const Outputs<T> got = kernel<T>(spec, before, x, dy, mistake, scaled);

  ReferenceResult want = layer.forward(x);
  if (backwardFrom == Saved::Kernel) {
    if (spec.center != Center::None) layer.call.saved["mean"] = doubles(got.mean);
    layer.call.saved["rstd"] = doubles(got.rstd);
  }
  for (auto& [name, quantity] : layer.backward(dy).outputs) want.outputs[name] = quantity;
  std::string out;
  const auto check = [&](const char* name, const std::vector<T>& values) {
    const Tolerance tolerance = toleranceOf(layer.problem, name, kExtents);
    const Agreement agreement = compare(want.outputs.at(name), doubles(values), tolerance);
    if (!agreement.ok) out += std::string(name) + ": " + agreement.text + "\n";
  };
  check("y", got.y);
  check("saved.rstd", got.rstd);
  if (spec.center != Center::None) check("saved.mean", got.mean);
  check("dx", got.dx);
  check("dscale", got.dscale);
  check("dbias", got.dbias);
  return out;
}

std::vector<Spec> specs() {
  Spec rms = rmsNorm();
  rms.bias = true;
  return {layerNorm(), rms, batchNorm(), powerNormV(), powerNorm()};
}

// Returns the specs above, and each with each activation.
std::vector<Spec> activeSpecs() {
  std::vector<Spec> out = specs();
  for (Spec spec : specs()) {
    for (int activation = 1; activation <= static_cast<int>(Activation::Tanh); ++activation) {
      spec.activation = static_cast<Activation>(activation);
      out.push_back(spec);
      out.back().name += " and activation " + std::to_string(activation);
    }
  }
  return out;
}

TEST(ReferenceMagnitude, HonestFloatsPassOnEveryHardInput) {
  for (const Spec& spec : activeSpecs()) {
    for (HardInput input : allHardInputs()) {
      EXPECT_EQ(disagreements<float>(spec, input), "") << spec.name << " on " << name(input);
    }
  }
}

TEST(ReferenceMagnitude, HonestFloatsPassFromTheirOwnStatistics) {
  for (const Spec& spec : activeSpecs()) {
    for (HardInput input : allHardInputs()) {
      EXPECT_EQ(disagreements<float>(spec, input, Mistake::None, Saved::Reference), "")
          << spec.name << " on " << name(input);
    }
  }
}

TEST(ReferenceMagnitude, FlushingDenormalsPassesOnEveryHardInput) {
  for (Spec spec : activeSpecs()) {
    for (HardInput input : allHardInputs()) {
      EXPECT_EQ(disagreements<Flushing>(spec, input), "") << spec.name << " on " << name(input);
    }
  }
}

// x - mean and dy are normal numbers here, and their products are not.
TEST(ReferenceMagnitude, ProductsThatAreFlushedBeforeTheScalePass) {
  for (Spec spec : activeSpecs()) {
    for (HardInput input : allHardInputs()) {
      for (double dy : {1.0, 0x1p-30, 0x1p-60, 0x1p-90, 0x1p-110, 0x1p-120})
        EXPECT_EQ(disagreements<Flushing>(spec, input, Mistake::None, Saved::Kernel, Scaled::Sums, dy), "")
            << spec.name << " on " << name(input) << ", dy about " << dy;
    }
  }
}

TEST(ReferenceMagnitude, OnePassVarianceFailsWhereTheMeanIsLarge) {
  for (const Spec& spec : {layerNorm(), batchNorm()}) {
    EXPECT_NE(disagreements<float>(spec, HardInput::Mean1000, Mistake::OnePassVariance), "") << spec.name;
    EXPECT_NE(disagreements<float>(spec, HardInput::Mean1e4, Mistake::OnePassVariance), "") << spec.name;
    EXPECT_EQ(disagreements<float>(spec, HardInput::Normal, Mistake::OnePassVariance), "") << spec.name;
  }
}

TEST(ReferenceMagnitude, WrongFormulasFail) {
  for (const Spec& spec : {layerNorm(), batchNorm()}) {
    for (HardInput input : {HardInput::Normal, HardInput::Mean1000, HardInput::Ramp, HardInput::OutlierRow}) {
      EXPECT_NE(disagreements<float>(spec, input, Mistake::WrongCount), "")
          << spec.name << " on " << name(input);
      EXPECT_NE(disagreements<float>(spec, input, Mistake::MissingTerm), "")
          << spec.name << " on " << name(input);
    }
  }
}

TEST(ReferenceMagnitude, WrongActivationsFail) {
  for (Spec spec : specs()) {
    for (HardInput input : {HardInput::Normal, HardInput::Mean1000, HardInput::Ramp, HardInput::OutlierRow}) {
      const std::string what = spec.name + " on " + std::string(name(input));
      for (Activation gelu : {Activation::Gelu, Activation::GeluTanh}) {
        if (input == HardInput::Mean1000) break;  // the two differ by 5e-4, less than the error of o there
        spec.activation = gelu;
        const std::string wrong = disagreements<float>(spec, input, Mistake::OtherGelu);
        for (const char* output : {"y: ", "dx: ", "dscale: ", "dbias: "})
          EXPECT_NE(wrong.find(output), wrong.npos) << what;
      }
      for (int activation = 1; activation <= static_cast<int>(Activation::Tanh); ++activation) {
        spec.activation = static_cast<Activation>(activation);
        const std::string wrong = disagreements<float>(spec, input, Mistake::OneSlope);
        for (const char* output : {"dx: ", "dscale: ", "dbias: "})
          EXPECT_NE(wrong.find(output), wrong.npos) << what << ", activation " << activation;
      }
    }
  }
}

TEST(ReferenceMagnitude, OfAProductOfVanishingSumsDoesNotVanish) {
  using reference::exact;
  const reference::Tracked zero = exact(1000) - exact(1000);
  EXPECT_EQ((zero * zero).value, 0);
  EXPECT_NEAR((zero * zero).magnitude, reference::kUnit * 2000 * 2000, 1e-9);
  EXPECT_NEAR((exact(3) * zero).magnitude, 6000, 1e-2);
}

// An error that is not small beside the moment moves its root further down than up: upwards the root of twice
// the moment is the end, 0.29 of the value away.
TEST(ReferenceMagnitude, OfARootCoversTheSmallestMoment) {
  Spec spec = layerNorm();
  spec.epsilon = 1e-20;
  Layer layer(spec, {1, 1, 2});
  layer.problem.data = layer.problem.params = DType::F32;
  const Quantity rstd = layer.forward({1000, 1000 + 0x7p-14}).outputs.at("saved.rstd");
  EXPECT_NEAR(rstd.value[0], 4681, 1);
  EXPECT_GT(rstd.magnitude[0] * reference::kUnit, 0.4 * rstd.value[0]);
  EXPECT_LT(rstd.magnitude[0] * reference::kUnit, rstd.value[0]);
}

// A layer of one feature in f32 that divides by the geometric mean of its batch and of a window of ones.
Layer ofGeometricWindow(int64_t rows, double epsilon = batchNorm().epsilon) {
  Spec spec = batchNorm();
  spec.epsilon = epsilon;
  spec.divideBy = DivideBy::Window;
  spec.window = {.size = 2, .mean = WindowMean::Geometric};
  Layer layer(spec, {1, rows, 1});
  layer.problem.data = layer.problem.params = DType::F32;
  layer.call.state["step"] = {20}, layer.call.state["window_psi2"] = {1, 1};
  return layer;
}

// Squares of 9e-38 are normal; a term that merges the moments of parts may be below 2^-126, and flushed, and
// so may what an addition leaves.
TEST(ReferenceMagnitude, OfAVarianceCoversATermThatIsFlushed) {
  const Quantity moments = ofGeometricWindow(2).forward({3e-19, -3e-19}).outputs.at("state.window_psi2");
  EXPECT_NEAR(moments.value[0], 9e-38, 1e-42);
  EXPECT_GE(moments.magnitude[0] * reference::kUnit, 2 * 0x1p-126);
  EXPECT_LT(moments.magnitude[0] * reference::kUnit, 3 * 0x1p-126);
}

// Three values of 1000: their variance is 0, and in f32 as much as the square of a rounding.
TEST(ReferenceMagnitude, OfAGeometricMeanCoversAVarianceThatMayBeZero) {
  Layer layer = ofGeometricWindow(3);
  const double epsilon = layer.problem.spec->epsilon;
  const Quantity rstd = layer.forward({1000, 1000, 1000}).outputs.at("saved.rstd");
  EXPECT_NEAR(rstd.value[0], 1 / std::sqrt(epsilon), 1e-9) << "one of two moments is 0";
  const double rounding = 1000 * 0x1p-24, mean = rounding;  // the root of 1 and of its square
  EXPECT_GT(rstd.magnitude[0] * reference::kUnit, rstd.value[0] - 1 / std::sqrt(mean + epsilon));
}

// A variance of 1.2e-38, just above the smallest normal number: with an error it is subnormal, and flushed.
TEST(ReferenceMagnitude, OfAGeometricMeanCoversAVarianceThatMayBeFlushed) {
  const double deviation = std::sqrt(1.02 * reference::kSmallestNormal), epsilon = 1e-20;
  const Quantity rstd =
      ofGeometricWindow(2, epsilon).forward({deviation, -deviation}).outputs.at("saved.rstd");
  EXPECT_LT(rstd.value[0], 4e9);
  EXPECT_GE(rstd.magnitude[0] * reference::kUnit, 1 / std::sqrt(epsilon) - rstd.value[0]);
}

TEST(ReferenceMagnitude, IsTheSumOfTheTerms) {
  Spec spec = batchNorm();
  spec.epsilon = 1e-12;
  Layer layer(spec, {1, 2, 1});
  layer.call.scale = {2};
  layer.call.bias = {-3};
  const Quantity y = layer.forward({1000, 1002}).outputs.at("y");
  // mean 1001, s = 1: 2 (1000 + 1001) + 3, of a value 2 * -1 - 3.
  EXPECT_NEAR(y.value[0], -5, 1e-9);
  EXPECT_NEAR(y.magnitude[0], 4005, 4005 * 1e-2);
}

// With round=normalized either neighbour of a tie is right, and of other values one alone.
TEST(ReferenceMagnitude, OfARoundedValueCoversBothNeighboursOfATieAlone) {
  Spec spec = powerNorm();
  spec.epsilon = 0;
  spec.scale = spec.bias = false;
  Layer layer(spec, {1, 1, 2});
  layer.problem.data = DType::BF16, layer.problem.params = DType::F32;
  layer.problem.roundsNormalized = true;
  layer.call.state["psi2"] = {4.0 / 9, 4.0 / 9};
  const double ulp = 0x1p-7;  // of bf16 between 1 and 2
  // 1.5 x: three halves of an ulp above 1.5, and 1.5 itself.
  const Quantity y = layer.infer({1 + ulp, 1}).outputs.at("y");
  EXPECT_NEAR(y.value[0], 1.5 + 1.5 * ulp, ulp / 2);
  EXPECT_EQ(y.value[1], 1.5);
  EXPECT_GE(y.magnitude[0] * reference::kUnit, ulp);
  EXPECT_LT(y.magnitude[0] * reference::kUnit, 1.1 * ulp);
  EXPECT_NEAR(y.magnitude[1], 1.5, 1e-2);
}

TEST(ReferenceMagnitude, OfAFactorCountsOffsetAndScale) {
  Spec spec = rmsNorm();
  spec.epsilon = 1e-12;
  spec.scaleOffset = 1;
  Layer layer(spec, {1, 1, 1});
  layer.call.scale = {-1};
  const Quantity y = layer.forward({3}).outputs.at("y");  // (1 - 1) * 1
  EXPECT_EQ(y.value[0], 0);
  EXPECT_NEAR(y.magnitude[0], 2, 1e-2);
}

// An infinity divides the other elements of its row away, exactly: what is left is the bias.
TEST(ReferenceMagnitude, OfAnElementBesideAnInfinityIsThatOfItsBias) {
  for (const EpsilonMode mode : {EpsilonMode::Add, EpsilonMode::Max, EpsilonMode::Outside}) {
    Spec spec = rmsNorm();
    spec.bias = true;
    spec.epsilonMode = mode;
    Layer layer(spec, {1, 1, 3});
    layer.call.bias = {0.5, 0.25, 2};
    const Quantity y = layer.forward({std::numeric_limits<double>::infinity(), 1, -4}).outputs.at("y");
    EXPECT_TRUE(std::isnan(y.value[0]));
    for (size_t i : {1, 2}) {
      EXPECT_EQ(y.value[i], layer.call.bias[i]);
      EXPECT_NEAR(y.magnitude[i], y.value[i], 1e-6);
    }
  }
}

TEST(ReferenceMagnitude, OfAClippedValueIsWhatAnErrorMovesAcrossTheLimit) {
  using reference::clipped, reference::kUnit, reference::Tracked;
  const auto magnitudeOf = [](Tracked a) { return clipped(a, -2, 2, kUnit).magnitude; };
  EXPECT_EQ(magnitudeOf({1.5, 1e6}), 1e6) << "it is not clipped";
  EXPECT_EQ(magnitudeOf({50, 1e6}), 2) << "no error reaches the limit";
  EXPECT_EQ(magnitudeOf({-50, 1e6}), 2);
  EXPECT_EQ(magnitudeOf({2 + 1e5 * kUnit, 1e6}), 1e6 - 5e4) << "a part of the error does";
  EXPECT_EQ(magnitudeOf({-2 - 1e5 * kUnit, 1e6}), 1e6 - 5e4);
  EXPECT_EQ(magnitudeOf({std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}),
            2);
  EXPECT_TRUE(std::isnan(clipped({std::nan(""), 1}, -2, 2, kUnit).value));
}

TEST(ReferenceMagnitude, IsNeverBelowTheValue) {
  for (const Spec& spec : activeSpecs()) {
    for (HardInput input :
         {HardInput::Normal, HardInput::Mean1e4, HardInput::ConstantRows, HardInput::Tiny}) {
      Layer layer(spec, kExtents);
      ReferenceResult result = layer.forward(hardInput(input, kExtents, DType::F32));
      result.outputs.merge(layer.backward(hardInput(HardInput::Normal, kExtents, DType::F32, 2)).outputs);
      for (const auto& [name, quantity] : result.outputs) {
        for (size_t i = 0; i < quantity.value.size(); ++i) {
          EXPECT_GE(quantity.magnitude[i], std::abs(quantity.value[i]) * (1 - 1e-12)) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace normc
