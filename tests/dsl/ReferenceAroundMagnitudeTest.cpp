// Is the tolerance fair to what surrounds a norm? Floats that follow the formulas pass on every hard input,
// also those that take h from a stream of a narrow type, and mistakes do not.
#include "dsl/Tolerance.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr Extents kExtents{3, 9, 16};
constexpr int64_t kCount = 3 * 9 * 16;

// phi and phi' in floats.
std::pair<float, float> functionOf(Activation function, float t) {
  const float p = 1 / (1 + std::exp(-t));
  switch (function) {
    case Activation::Silu:
      return {t * p, p * (1 + t * (1 - p))};
    case Activation::Sigmoid:
      return {p, p * (1 - p)};
    case Activation::Tanh: {
      const float tanh = std::tanh(t);
      return {tanh, 1 - tanh * tanh};
    }
    case Activation::Gelu: {
      const float below = 0.5f * (1 + std::erf(t * float(M_SQRT1_2)));
      return {t * below, below + t * std::exp(-0.5f * t * t) * float(M_2_SQRTPI / M_SQRT2 / 2)};
    }
    default:
      return {t, 1};
  }
}

float sumOf(const std::vector<float>& terms) {
  float lane[8] = {};
  for (size_t i = 0; i < terms.size(); ++i) lane[i % 8] += terms[i];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

enum class Mistake { None, NoOffset, OtherFunction, NoSlope, StatisticsOfX, StreamForgotten };

// Both directions of a norm that centres, over rows or features, in floats, with what surrounds it. y is made
// of h as it is at hand, or as the stream has it.
class Kernel {
 public:
  Kernel(const Layer& layer, Mistake mistake)
      : layer_(layer), spec_(*layer.problem.spec), data_(layer.problem.data), mistake_(mistake) {}

  std::map<std::string, Vector> forward(bool fromStream) {
    std::vector<float> h(kCount), counted(kCount);
    Vector stream(kCount), y(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      h[i] = valueOf(layer_.call.x[i]);
      counted[i] = h[i];
      if (spec_.hasGate(Side::Before)) h[i] *= phi(i).first;
      if (spec_.hasResidual(Side::Before)) h[i] += valueOf(layer_.call.residual[i]);
      if (mistake_ != Mistake::StatisticsOfX) counted[i] = h[i];
      stream[i] = round(h[i], data_);
      if (fromStream) h[i] = valueOf(stream[i]);
    }
    for (int64_t line = 0; line < lines(); ++line) {
      std::vector<float> terms, squares;
      for (int64_t j = 0; j < length(); ++j) terms.push_back(counted[at(line, j)]);
      const float mean = sumOf(terms) / valueOf(length());
      for (float& each : terms) each -= mean, squares.push_back(each * each);
      const float left = sumOf(terms) / valueOf(length());
      const float rstd = 1 / std::sqrt(sumOf(squares) / valueOf(length()) - left * left + 1e-5f);
      mean_.push_back(mean), rstd_.push_back(rstd);
      for (int64_t j = 0; j < length(); ++j) {
        const int64_t i = at(line, j);
        y[i] = round(output(i, (h[i] - mean) * rstd), data_);
      }
    }
    return {{"y", y}, {"residual_out", stream}, {"saved.mean", mean_}, {"saved.rstd", rstd_}};
  }

  // Uses what forward saved, and the stream of the layer.
  std::map<std::string, Vector> backward(const Vector& dy) {
    Vector dx(kCount), dresidual(kCount);
    std::vector<float> g(kCount), x0(kCount);
    std::map<int64_t, std::vector<float>> dgate, dmodScale, dmodShift;
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t line = lineOf(i);
      x0[i] = (inputOf(i) - valueOf(mean_[line])) * valueOf(rstd_[line]);
      const float v = affine(i, x0[i]);
      float d = valueOf(dy[i]);
      if (spec_.hasGate(Side::After)) {
        dgate[index(kGate, i)].push_back(d * modulated(i, v) * phi(i).second);
        d *= phi(i).first;
      }
      dmodScale[index(kModScale, i)].push_back(d * v);
      dmodShift[index(kModShift, i)].push_back(d);
      g[i] = valueOf(layer_.call.scale[i % kExtents.features]) * (d * factor(i));
    }
    for (int64_t line = 0; line < lines(); ++line) {
      std::vector<float> terms, products;
      for (int64_t j = 0; j < length(); ++j) {
        terms.push_back(g[at(line, j)]);
        products.push_back(g[at(line, j)] * x0[at(line, j)]);
      }
      const float meanG = sumOf(terms) / valueOf(length()), meanGX = sumOf(products) / valueOf(length());
      for (int64_t j = 0; j < length(); ++j) {
        const int64_t i = at(line, j);
        float dh = valueOf(rstd_[line]) * (g[i] - meanG - x0[i] * meanGX);
        if (spec_.hasStream() && mistake_ != Mistake::StreamForgotten)
          dh += valueOf(layer_.call.dresidualOut[i]);
        dresidual[i] = round(dh, data_);
        if (spec_.hasGate(Side::Before)) {
          dgate[index(kGate, i)].push_back(dh * valueOf(layer_.call.x[i]) * phi(i).second);
          dh *= phi(i).first;
        }
        dx[i] = round(dh, data_);
      }
    }
    return {{"dx", dx},
            {"dresidual", dresidual},
            {"dgate", sums(dgate)},
            {"dmod_scale", sums(dmodScale)},
            {"dmod_shift", sums(dmodShift)}};
  }

 private:
  static float valueOf(double value) { return static_cast<float>(value); }

  // A line is what one statistic is taken over.
  bool columns() const { return spec_.perFeature(); }
  int64_t lines() const { return columns() ? kExtents.features : kExtents.totalRows(); }
  int64_t length() const { return kCount / lines(); }
  int64_t at(int64_t line, int64_t j) const { return columns() ? j * lines() + line : line * length() + j; }
  int64_t lineOf(int64_t i) const { return columns() ? i % lines() : i / length(); }

  int64_t index(Tensor tensor, int64_t i) const {
    switch (shapeOf(tensor, hasOf(layer_.problem))) {
      case TensorShape::PerFeature:
        return i % kExtents.features;
      case TensorShape::PerSegment:
        return i / (kExtents.rows * kExtents.features) * kExtents.features + i % kExtents.features;
      default:
        return i;
    }
  }
  Vector sums(const std::map<int64_t, std::vector<float>>& terms) const {
    Vector out;
    for (const auto& [at, each] : terms) out.push_back(round(sumOf(each), data_));
    return out;
  }
  // h, as backward has it.
  float inputOf(int64_t i) const {
    if (spec_.hasStream()) return valueOf(layer_.call.residualOut[i]);
    const float x = valueOf(layer_.call.x[i]);
    return spec_.hasGate(Side::Before) ? x * phi(i).first : x;
  }
  std::pair<float, float> phi(int64_t i) const {
    Activation function = spec_.gate->function;
    if (mistake_ == Mistake::OtherFunction)
      function = function == Activation::Silu ? Activation::Gelu : Activation::Silu;
    auto at = functionOf(function, valueOf(layer_.call.gate[index(kGate, i)]));
    if (mistake_ == Mistake::NoSlope) at.second = 1;
    return at;
  }
  float affine(int64_t i, float x0) const {
    const int64_t feature = i % kExtents.features;
    return valueOf(layer_.call.scale[feature]) * x0 + valueOf(layer_.call.bias[feature]);
  }
  float factor(int64_t i) const {
    const float offset = mistake_ == Mistake::NoOffset ? 0 : 1;
    return offset + valueOf(layer_.call.modScale[index(kModScale, i)]);
  }
  float modulated(int64_t i, float v) const {
    return factor(i) * v + valueOf(layer_.call.modShift[index(kModShift, i)]);
  }
  float output(int64_t i, float x0) const {
    float o = modulated(i, affine(i, x0));
    if (spec_.hasGate(Side::After)) o *= phi(i).first;
    if (spec_.hasResidual(Side::After)) o += valueOf(layer_.call.residual[i]);
    return o;
  }

  const Layer& layer_;
  const Spec& spec_;
  DType data_;
  Mistake mistake_;
  Vector mean_, rstd_;
};

// The outputs that disagree, each with its worst element.
std::string disagreements(const Spec& spec, HardInput input, DType data, bool fromStream = false,
                          Mistake mistake = Mistake::None) {
  Layer layer(spec, kExtents);
  layer.problem.data = data, layer.problem.params = DType::F32;
  layer.call.scale = normalValues(kExtents.features, DType::F32, 1, 1);
  layer.call.bias = normalValues(kExtents.features, DType::F32, 2);
  for (const Tensor tensor : {kResidual, kGate, kModScale, kModShift})
    if (Vector& values = layer.input(tensor); !values.empty())
      values = normalValues(layer.elements(tensor), data, 3 + tensor);
  if (spec.hasStream()) layer.call.dresidualOut = normalValues(kCount, data, 20);
  const Vector x = hardInput(input, kExtents, data), dy = normalValues(kCount, data, 9);
  ReferenceResult want = layer.forward(x);
  Kernel kernel(layer, mistake);
  std::map<std::string, Vector> got = kernel.forward(fromStream);
  if (spec.hasStream()) layer.call.residualOut = got.at("residual_out");
  layer.call.saved["mean"] = got.at("saved.mean"), layer.call.saved["rstd"] = got.at("saved.rstd");
  got.merge(kernel.backward(dy));
  want.outputs.merge(layer.backward(dy).outputs);
  std::string out;
  for (const auto& [name, values] : got) {
    if (!want.outputs.contains(name)) continue;
    const Tolerance tolerance = toleranceOf(layer.problem, name, kExtents);
    const Agreement agreement = compare(want.outputs.at(name), values, tolerance);
    if (!agreement.ok) out += name + ": " + agreement.text + "\n";
  }
  return out;
}

// Norms with each gate: one before with a residual before, one behind with a residual before or after.
std::vector<Spec> specs() {
  std::vector<Spec> out;
  for (Spec spec : {layerNorm(), batchNorm()})
    for (const Activation function :
         {Activation::None, Activation::Silu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu})
      for (const Per per : {Per::Row, Per::Segment, Per::Feature})
        for (int sides = 0; sides < 4; ++sides) {
          spec.gate = Spec::Gate{.function = function,
                                 .side = sides == 0 || sides == 3 ? Side::Before : Side::After,
                                 .per = per};
          spec.residual = Spec::Residual{.side = sides >= 2 ? Side::After : Side::Before};
          spec.modulate =
              Spec::Modulate{.scale = true, .shift = true, .per = per == Per::Row ? Per::Row : Per::Segment};
          out.push_back(spec);
          out.back().name += " " + std::to_string(static_cast<int>(function)) + " " +
                             std::to_string(static_cast<int>(per)) + " " + std::to_string(sides);
        }
  return out;
}

TEST(ReferenceAroundMagnitude, HonestFloatsPassOnEveryHardInput) {
  for (const Spec& spec : specs())
    for (const HardInput input : allHardInputs())
      EXPECT_EQ(disagreements(spec, input, DType::F32), "") << spec.name << " on " << name(input);
}

TEST(ReferenceAroundMagnitude, AStreamOfANarrowTypeMayBeReadAgain) {
  for (const Spec& spec : specs())
    for (const HardInput input : allHardInputs())
      for (const bool fromStream : {false, true})
        if (spec.hasStream())
          EXPECT_EQ(disagreements(spec, input, DType::BF16, fromStream), "")
              << spec.name << " on " << name(input) << (fromStream ? " from the stream" : "");
}

// The stored values of a group make its factor as well: the rounding of a large one moves them all.
TEST(ReferenceAroundMagnitude, BehindPreAStreamMovesTheFactorOfItsGroup) {
  Spec spec = batchNorm();
  spec.pre = Spec::Pre{};
  spec.residual = Spec::Residual{};
  const Extents extents{1, 4, 2};
  // In bf16 the error of 256 is 2^-8 of it, that of 1.9921875 only 2^-9.
  const Vector h = {256, 1.9921875, 1, 3, -2, 0.5, 1.5, -1};
  const auto outputs = [&](DType stream) {
    Layer layer(spec, extents);
    layer.problem.data = DType::BF16, layer.problem.params = DType::F32;
    layer.problem.output = DType::F32;
    layer.problem.stream = stream;
    layer.call.scale = {1, 1}, layer.call.bias = {0, 0}, layer.call.residual = Vector(h.size(), 0);
    return layer.forward(h).outputs;
  };
  const auto rounded = outputs(DType::BF16), whole = outputs(DType::F32);
  constexpr double kUnit = 0x1p-21;  // in which magnitudes count other errors than those of f32
  for (size_t i = 0; i < h.size(); ++i) {
    const size_t other = i ^ 1;
    const auto factor = [&](double own, double beside) {
      return 1 / std::sqrt((own * own + beside * beside) / 2 + spec.pre->epsilon);
    };
    double most = 0;  // with h, its factor, or both of stored values
    for (const double a : {-0.5, 0.5})
      for (const double b : {-0.5, 0.5}) {
        const double own = h[i] + a * ulp(h[i], DType::BF16),
                     beside = h[other] + b * ulp(h[other], DType::BF16);
        const double r = factor(h[i], h[other]), stored = factor(own, beside);
        for (const double u : {own * r, h[i] * stored, own * stored})
          most = std::max(most, std::abs(u - h[i] * r));
      }
    const double rstd = whole.at("saved.rstd").value[i % 2];
    const double granted = (rounded.at("y").magnitude[i] - whole.at("y").magnitude[i]) * kUnit / rstd;
    EXPECT_GE(granted, most * 0.95) << i;
    EXPECT_LE(granted, most * 1.05) << i;
  }
}

TEST(ReferenceAroundMagnitude, MistakesFail) {
  for (const Spec& spec : specs()) {
    SCOPED_TRACE(spec.name);
    const auto says = [&](Mistake mistake, const char* output) {
      const std::string found = disagreements(spec, HardInput::Normal, DType::F32, false, mistake);
      return ("\n" + found).find("\n" + std::string(output) + ": ") != std::string::npos;
    };
    EXPECT_TRUE(says(Mistake::NoOffset, "y"));
    EXPECT_TRUE(says(Mistake::NoOffset, "dx"));
    EXPECT_TRUE(says(Mistake::OtherFunction, "y"));
    EXPECT_TRUE(says(Mistake::OtherFunction, "dgate"));
    if (spec.gate->function != Activation::None) {
      EXPECT_TRUE(says(Mistake::NoSlope, "dgate"));
      EXPECT_FALSE(says(Mistake::NoSlope, "dx"));
    }
    if (spec.hasStream() || spec.hasGate(Side::Before)) {
      EXPECT_TRUE(says(Mistake::StatisticsOfX, "y"));
      EXPECT_TRUE(says(Mistake::StatisticsOfX, "saved.rstd"));
    }
    if (spec.hasStream()) EXPECT_TRUE(says(Mistake::StreamForgotten, "dx"));
  }
}

// x and residual that cancel leave no error: h is as exact as one sum of floats.
TEST(ReferenceAroundMagnitude, OfASumIsThatOfItsValue) {
  Spec spec = layerNorm();
  spec.residual = Spec::Residual{};
  Layer layer(spec, {1, 1, 2});
  layer.call.residual = {-1000, 1};
  const Quantity h = layer.forward({1000.5, 2}).outputs.at("residual_out");
  EXPECT_EQ(h.value, (Vector{0.5, 3}));
  EXPECT_NEAR(h.magnitude[0], 0.5 * 9 / 8, 1e-9);
  EXPECT_NEAR(h.magnitude[1], 3 * 9.0 / 8, 1e-9);
}

// The gradient of h is 5.4e38, an infinity in f32, though a gate makes it finite here.
TEST(ReferenceAroundMagnitude, OfAProductWithAnInfinityOfTheKernelCoversIt) {
  Spec spec = layerNorm();
  spec.gate = Spec::Gate{.function = Activation::None, .side = Side::Before};
  spec.residual = Spec::Residual{};
  Layer layer(spec, {1, 1, 3});
  layer.problem.data = layer.problem.params = DType::F32;
  layer.call.gate = {0.01, 0.01, 0.01}, layer.call.residual = {1, 0, -1};
  layer.forward({0, 0, 0});
  layer.call.dresidualOut = {0, 3e38, 0};
  const auto outputs = layer.backward({0, 3e38, 0}).outputs;
  const Quantity& dx = outputs.at("dx");
  EXPECT_NEAR(dx.value[1], 5.4e36, 1e35);
  EXPECT_LT(dx.magnitude[0], 1e38);
  EXPECT_TRUE(
      compare(dx, {dx.value[0], HUGE_VAL, dx.value[2]}, toleranceOf(layer.problem, "dx", {1, 1, 3})).ok);
  EXPECT_FALSE(
      compare(dx, {HUGE_VAL, dx.value[1], dx.value[2]}, toleranceOf(layer.problem, "dx", {1, 1, 3})).ok);
}

TEST(ReferenceAroundMagnitude, IsNeverBelowTheValue) {
  for (const Spec& spec : specs()) {
    Layer layer(spec, kExtents);
    fillAround(layer, 1);
    ReferenceResult result = layer.forward(random(kCount, 2));
    result.outputs.merge(layer.backward(random(kCount, 3)).outputs);
    for (const auto& [name, quantity] : result.outputs)
      for (size_t i = 0; i < quantity.value.size(); ++i)
        EXPECT_GE(quantity.magnitude[i], std::abs(quantity.value[i]) * (1 - 1e-12))
            << spec.name << " " << name;
  }
}

}  // namespace
}  // namespace normc
