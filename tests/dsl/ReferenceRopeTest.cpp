// Pairs of features that are turned: a formula of its own here, identities, padded rows, and whether the
// tolerance is fair.
#include <complex>
#include <limits>

#include "dsl/Tolerance.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

using Rope = Spec::Rope;
using Complex = std::complex<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The tables of a call.
struct Tables {
  Vector cos, sin;
};
Tables tablesOf(const Layer& layer) { return {layer.call.ropeCos, layer.call.ropeSin}; }

// The formula in complex numbers: a pair is p + i q, and the table c + i s.
Vector turnedBy(const Rope& rope, int64_t features, const Tables& tables, Vector values, bool back = false) {
  const int64_t run = features / rope.groups.count, turned = rope.features.value_or(run);
  for (size_t row = 0; row < values.size() / features; ++row)
    for (int64_t feature = 0; feature < features; ++feature) {
      const int64_t at = feature % run;
      const bool half = rope.pairs == Pairs::Half, first = half ? at < turned / 2 : at % 2 == 0;
      if (at >= turned || !first) continue;
      const int64_t pair = half ? at : at / 2, partner = feature + (half ? turned / 2 : 1);
      const size_t entry = row * (turned / 2) + pair;
      const Complex factor(tables.cos[entry], tables.sin[entry]);
      double &p = values[row * features + feature], &q = values[row * features + partner];
      const Complex product = Complex(p, q) * (back ? std::conj(factor) : factor);
      p = product.real(), q = product.imag();
    }
  return values;
}

// A norm whose infer has v = x.
Spec identity(const Rope& rope) {
  Spec spec = norm("identity", Reduce::Rows, Center::None, Moment::Raw);
  spec.scale = spec.bias = false;
  spec.running = Spec::Running{};
  spec.divideBy = DivideBy::Running;
  spec.backward = Backward::Frozen;
  spec.epsilon = 0;
  spec.rope = rope;
  return spec;
}
Layer identityLayer(const Rope& rope, Extents extents, const Tables& tables) {
  Layer layer(identity(rope), extents);
  layer.call.ropeCos = tables.cos, layer.call.ropeSin = tables.sin;
  return layer;
}

TEST(ReferenceRope, ByHand) {
  Layer half = identityLayer({}, {1, 1, 4}, {{0.6, 0}, {0.8, 1}});
  expectNear(values(half.infer({1, 2, 3, 4}), "y"), {0.6 - 2.4, -4, 1.8 + 0.8, 2}, 1e-15);
  expectNear(values(half.inferBackward({1, 2, 3, 4}, {1, 2, 3, 4}), "dx"), {0.6 + 2.4, 4, 1.8 - 0.8, -2},
             1e-15);
  Layer interleaved = identityLayer({.pairs = Pairs::Interleaved}, {1, 1, 4}, {{0.6, 0}, {0.8, 1}});
  expectNear(values(interleaved.infer({1, 2, 3, 4}), "y"), {0.6 - 1.6, 1.2 + 0.8, -4, 3}, 1e-15);
  Layer runs = identityLayer({.groups = {2, ""}, .features = 2}, {1, 1, 8}, {{0.6}, {0.8}});
  expectNear(values(runs.infer({1, 2, 3, 4, 5, 6, 7, 8}), "y"),
             {0.6 - 1.6, 1.2 + 0.8, 3, 4, 3 - 4.8, 3.6 + 4, 7, 8}, 1e-15);
}

TEST(ReferenceRope, TurnsEachRowByItsOwnEntriesAndEachGroupByTheSame) {
  for (const Pairs pairs : {Pairs::Half, Pairs::Interleaved})
    for (const int64_t groups : {1, 2, 4})
      for (const int64_t features : {0, 2, 4}) {
        Rope rope{.pairs = pairs, .groups = {groups, ""}};
        if (features) rope.features = features;
        const int64_t count = 6 * (features ? features : 16 / groups) / 2;
        const Tables tables{random(count, 1), random(count, 2)};
        Layer layer = identityLayer(rope, {2, 3, 16}, tables);
        const Vector x = random(96, 3), dy = random(96, 4);
        expectNear(values(layer.infer(x), "y"), turnedBy(rope, 16, tables, x), 1e-15);
        expectNear(values(layer.inferBackward(x, dy), "dx"), turnedBy(rope, 16, tables, dy, true), 1e-15);
      }
}

Tables angles(int64_t count, uint64_t seed) {
  Tables tables;
  for (const double angle : random(count, seed, 0.5)) {
    tables.cos.push_back(std::cos(angle));
    tables.sin.push_back(std::sin(angle));
  }
  return tables;
}

TEST(ReferenceRope, BackIsTheInverseOfForth) {
  for (const Pairs pairs : {Pairs::Half, Pairs::Interleaved}) {
    const Rope rope{.pairs = pairs, .groups = {2, ""}};
    Tables tables = angles(12, 5);
    Layer layer = identityLayer(rope, {1, 3, 16}, tables);
    const Vector x = random(48, 1), y = values(layer.infer(x), "y");
    expectNear(values(layer.inferBackward(x, y), "dx"), x, 1e-14);
    for (double& each : tables.sin) each = -each;
    expectNear(values(identityLayer(rope, {1, 3, 16}, tables).infer(y), "y"), x, 1e-14);
  }
}

TEST(ReferenceRope, TheTwoPairingsAreOneInAnotherOrder) {
  const Tables tables = angles(12, 5);
  const auto reordered = [](const Vector& interleaved) {  // to half, of runs of 8
    Vector half(interleaved.size());
    for (size_t i = 0; i < half.size(); ++i) {
      const size_t run = i / 8 * 8, at = i % 8;
      half[run + at % 2 * 4 + at / 2] = interleaved[i];
    }
    return half;
  };
  Layer half = identityLayer({.groups = {2, ""}}, {1, 3, 16}, tables);
  Layer interleaved = identityLayer({.pairs = Pairs::Interleaved, .groups = {2, ""}}, {1, 3, 16}, tables);
  const Vector x = random(48, 1), dy = random(48, 2);
  EXPECT_EQ(reordered(values(interleaved.infer(x), "y")), values(half.infer(reordered(x)), "y"));
  EXPECT_EQ(reordered(values(interleaved.inferBackward(x, dy), "dx")),
            values(half.inferBackward(reordered(x), reordered(dy)), "dx"));
}

// A layer of a random spec, with everything given.
Layer randomLayer(const Spec& spec, uint64_t seed) {
  Layer layer(spec, {2, 3, 16}, /*mask=*/seed % 2 == 0);
  layer.problem.bindings = {{"heads", 2}};
  fillAround(layer, seed);
  if (!layer.call.mask.empty()) layer.call.mask = {1, 0, 1, 1, 1, 0};
  if (spec.scale) layer.call.scale = random(16, seed + 31, 1);
  if (spec.bias) layer.call.bias = random(16, seed + 32);
  return layer;
}

TEST(ReferenceRope, ByNothingIsTheNormWithoutIt) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Spec spec = randomRopeSpec(seed);
    Layer turned = randomLayer(spec, seed);
    spec.rope.reset();
    Layer bare = randomLayer(spec, seed);
    turned.call.ropeCos.assign(turned.call.ropeCos.size(), 1);
    turned.call.ropeSin.assign(turned.call.ropeSin.size(), 0);
    const Vector x = random(96, seed + 1), dy = random(96, seed + 2);
    ReferenceResult got = turned.forward(x), want = bare.forward(x);
    got.outputs.merge(turned.backward(dy).outputs), want.outputs.merge(bare.backward(dy).outputs);
    ASSERT_EQ(got.outputs.size(), want.outputs.size());
    for (const auto& [name, quantity] : want.outputs) expectNear(values(got, name), quantity.value, 0);
  }
}

// phi or psi and its derivative, of the functions below.
std::pair<double, double> functionOf(Activation function, double t) {
  const double tanh = std::tanh(t), sigmoid = 1 / (1 + std::exp(-t));
  if (function == Activation::Tanh) return {tanh, 1 - tanh * tanh};
  if (function == Activation::Sigmoid) return {sigmoid, sigmoid * (1 - sigmoid)};
  return {t, 1};
}

// Norms of every reduction, of features and of groups.
std::vector<Spec> norms() {
  std::vector<Spec> out = {layerNorm(), rmsNorm(),         batchNorm(),          powerNorm(),
                           mabn(2, 1),  unifiedNorm(2, 1), powerNormReleased(3), batchRenorm()};
  for (const Reduce reduce : {Reduce::Features, Reduce::Segment, Reduce::SegmentFeatures}) {
    out.push_back(norm("grouped", reduce, Center::Current, Moment::Central));
    if (reduce != Reduce::Segment) out.back().groups.count = 2;
  }
  return out;
}

// A norm, and behind it what is computed here: the rotation, a gate, a residual, an activation. It computes
// what the norm with all of them does, in every entry, over steps.
TEST(ReferenceRope, StandsBetweenModulationAndGate) {
  const Extents extents{2, 3, 8};
  constexpr int64_t kCount = 48;
  for (Spec spec : norms())
    for (const Pairs pairs : {Pairs::Half, Pairs::Interleaved})
      for (const bool surrounded : {false, true})
        for (const bool mask : {false, true}) {
          SCOPED_TRACE(spec.name + (surrounded ? " surrounded" : "") + (mask ? " mask" : ""));
          spec.rope.reset(), spec.gate.reset(), spec.residual.reset(), spec.modulate.reset();
          spec.activation = Activation::None;
          if (surrounded) spec.modulate = Spec::Modulate{.scale = true, .shift = true, .per = Per::Row};
          Layer bare(spec, extents, mask);
          spec.rope = Rope{.pairs = pairs, .groups = {2, ""}};
          if (surrounded) {
            spec.gate = Spec::Gate{Activation::Sigmoid, Side::After, Per::Row};
            spec.residual = Spec::Residual{.side = Side::After};
            spec.activation = Activation::Tanh;
          }
          Layer layer(spec, extents, mask);
          const bool left = spec.padding == Padding::LeaveOutOfStatistics;
          for (uint64_t step = 0; step < 4; ++step) {
            fillAround(layer, 40 * step);
            if (mask) layer.call.mask = bare.call.mask = {1, 0, 1, 0, 1, 1};
            if (spec.scale) layer.call.scale = bare.call.scale = random(8, 3, 1);
            if (spec.bias) layer.call.bias = bare.call.bias = random(8, 4);
            bare.call.modScale = layer.call.modScale, bare.call.modShift = layer.call.modShift;
            const Tables tables = tablesOf(layer);
            const Vector x = random(kCount, step + 5), dy = random(kCount, step + 6);
            const auto isLive = [&](int64_t i) { return left || !mask || layer.call.mask[i / 8] != 0; };
            const auto gate = [&](int64_t i) {
              return surrounded ? functionOf(Activation::Sigmoid, layer.call.gate[i]) : std::pair(1.0, 0.0);
            };
            const auto behind = [&](int64_t i, double t) {
              const double residual = surrounded ? layer.call.residual[i] : 0;
              return functionOf(spec.activation, gate(i).first * t + residual);
            };
            const auto expectOutput = [&](const ReferenceResult& got, const ReferenceResult& norm) {
              Vector y = turnedBy(*spec.rope, 8, tables, values(norm, "y"));
              for (int64_t i = 0; i < kCount; ++i) y[i] = isLive(i) ? behind(i, y[i]).first : 0;
              expectNear(values(got, "y"), y, 1e-12);
            };
            const auto expectGradients = [&](const ReferenceResult& got, const Vector& m, auto&& ofBare) {
              const Vector t = turnedBy(*spec.rope, 8, tables, m);
              Vector dt(kCount), dgate(kCount);
              for (int64_t i = 0; i < kCount; ++i) {
                if (!isLive(i)) continue;
                const double slope = dy[i] * behind(i, t[i]).second;
                dt[i] = slope * gate(i).first, dgate[i] = slope * t[i] * gate(i).second;
              }
              const ReferenceResult want = ofBare(turnedBy(*spec.rope, 8, tables, dt, true));
              for (const auto& [name, quantity] : want.outputs)
                expectNear(values(got, name), quantity.value, 1e-11);
              if (surrounded) expectNear(values(got, "dgate"), dgate, 1e-12);
            };
            if (spec.running) {
              const ReferenceResult infer = bare.infer(x);
              expectOutput(layer.infer(x), infer);
              expectGradients(layer.inferBackward(x, dy), values(infer, "y"),
                              [&](const Vector& dm) { return bare.inferBackward(x, dm); });
            }
            const ReferenceResult forward = bare.forward(x);
            expectOutput(layer.forward(x), forward);
            // With `forward = no`, y has no r, and backward computes the same m again.
            expectGradients(layer.backward(dy), values(forward, "y"),
                            [&](const Vector& dm) { return bare.backward(dm); });
            for (const auto& [field, after] : bare.call.state)
              expectNear(layer.call.state.at(field), after, 1e-11);
          }
        }
}

TEST(ReferenceRope, OfRowsThatAreExcludedReadsNothing) {
  for (Spec spec : norms()) {
    SCOPED_TRACE(spec.name);
    spec.padding = Padding::Exclude;
    spec.rope = Rope{.groups = {2, ""}};
    spec.activation = Activation::Sigmoid;  // psi(0) is not 0
    Layer padded(spec, {1, 4, 8}, true), dense(spec, {1, 2, 8});
    padded.call.mask = {1, 0, 0, 1};
    const auto withPadding = [](const Vector& all, double filling) {
      const size_t width = all.size() / 2;
      Vector out(4 * width, filling);
      std::copy(all.begin(), all.begin() + width, out.begin());
      std::copy(all.begin() + width, all.end(), out.end() - width);
      return out;
    };
    fillAround(dense, 5);
    padded.call.ropeCos = withPadding(dense.call.ropeCos, kNan);
    padded.call.ropeSin = withPadding(dense.call.ropeSin, kNan);
    const Vector x = random(16, 1), dy = random(16, 2);
    expectNear(values(padded.forward(withPadding(x, kNan)), "y"),
               withPadding(values(dense.forward(x), "y"), 0), 0);
    const ReferenceResult got = padded.backward(withPadding(dy, kNan)), want = dense.backward(dy);
    expectNear(values(got, "dx"), withPadding(values(want, "dx"), 0), 0);
    expectNear(values(got, "dscale"), values(want, "dscale"), 0);
    EXPECT_EQ(padded.call.state, dense.call.state);
  }
}

TEST(ReferenceRope, ANanReachesItsPartnerAlone) {
  Layer layer = identityLayer({.groups = {2, ""}, .features = 2}, {1, 2, 8}, {{0.6, 0.6}, {0.8, 0.8}});
  Vector x(16, 1);
  x[4] = kNan;  // of the second group of the first row; 6 and 7 stay
  const Vector y = values(layer.infer(x), "y"), dx = values(layer.inferBackward(Vector(16, 1), x), "dx");
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(std::isnan(y[i]), i == 4 || i == 5) << i;
    EXPECT_EQ(std::isnan(dx[i]), i == 4 || i == 5) << i;
  }
}

TEST(ReferenceRope, CodesAreOfWhatIsTurned) {
  Spec spec = rmsNorm();
  spec.rope = Rope{.groups = {2, ""}};
  Layer plain(spec, {1, 3, 8});
  spec.quantize = Spec::Quantize{.per = QuantizePer::Block, .size = 4};
  Layer codes(spec, {1, 3, 8});
  fillAround(plain, 1), fillAround(codes, 1);
  const Vector x = random(24, 2), y = values(plain.forward(x), "y");
  const ReferenceResult got = codes.forward(x);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(values(got, "codes")[i] * values(got, "quant_scale_out")[i / 4], y[i], 1e-6);
  const Vector dy = random(24, 3);
  expectNear(values(codes.backward(dy), "dx"), values(plain.backward(dy), "dx"), 0);
}

TEST(ReferenceRope, TakesTablesOfItsPairs) {
  const auto said = [](const Vector& cos, const Vector& sin, int64_t features = 8, bool turns = true) {
    Spec spec = rmsNorm();
    spec.scale = false;
    if (turns) spec.rope = Rope{.groups = {2, ""}};
    Layer layer(spec, {1, 2, 8});
    layer.call.extents.features = features;
    layer.call.x = Vector(2 * features, 1);
    layer.call.ropeCos = cos, layer.call.ropeSin = sin;
    const auto result = evaluate(layer.problem, layer.call);
    return result ? "" : text(result.errors());
  };
  EXPECT_EQ(said(Vector(4, 1), Vector(4, 1)), "");
  EXPECT_EQ(said(Vector(8, 1), {}),
            "error: rope_cos has 8 elements, not 4\n  hint: rope_cos is [segments, rows, pairs]\n"
            "error: rope_sin has 0 elements, not 4\n  hint: rope_sin is [segments, rows, pairs]\n");
  EXPECT_EQ(said({}, {}, 6), "error: 6 features are no multiple of 4: rope turns pairs\n");
  EXPECT_EQ(said(Vector(4, 1), {}, 8, false),
            "error: rope_cos has 4 elements, not 0\n"
            "  hint: rms_norm:forward@f64[*x*] takes no rope_cos\n");
}

TEST(ReferenceRopeMagnitude, IsThatOfBothProducts) {
  Layer layer = identityLayer({}, {1, 1, 2}, {{0.6}, {0.8}});
  const Quantity y = layer.infer({4, 3}).outputs.at("y");
  expectNear(y.value, {0, 5}, 1e-15);
  // Both inputs have the magnitude of their value, products and sum an eighth of theirs more.
  expectNear(y.magnitude, {(2.4 + 2.4) * 9 / 8, (1.8 + 3.2) * 9 / 8 + 5.0 / 8}, 1e-5);
}

enum class Mistake { None, OtherSign, OtherPairs, TablesOfTheFirstRow, NotTurnedBack, AllFeatures };

// An RMS norm of heads, scaled and turned, in floats; and its gradient.
std::map<std::string, Vector> inFloats(const Layer& layer, const Vector& x, const Vector& dy,
                                       Mistake mistake) {
  const Rope& rope = *layer.problem.spec->rope;
  const DType data = layer.problem.data;
  const int64_t features = layer.call.extents.features, run = features / rope.groups.count;
  const int64_t turned = mistake == Mistake::AllFeatures ? run : rope.features.value_or(run);
  const int64_t pairs = rope.features.value_or(run) / 2;
  const bool half = (rope.pairs == Pairs::Half) != (mistake == Mistake::OtherPairs);
  Vector y(x.size()), dx(x.size());
  for (size_t start = 0; start < x.size(); start += run) {
    const int64_t row = mistake == Mistake::TablesOfTheFirstRow ? 0 : int64_t(start) / features;
    const auto turn = [&](std::vector<float>& values, float sign) {
      if (mistake == Mistake::OtherSign) sign = -sign;
      for (int64_t l = 0; l < turned / 2; ++l) {
        const float c = float(layer.call.ropeCos[row * pairs + l % pairs]);
        const float s = sign * float(layer.call.ropeSin[row * pairs + l % pairs]);
        float &p = values[half ? l : 2 * l], &q = values[half ? l + turned / 2 : 2 * l + 1];
        const float product = p * s;
        p = p * c - q * s, q = q * c + product;
      }
    };
    const auto mean = [&](const std::vector<float>& terms) {
      float lane[4] = {};
      for (int64_t j = 0; j < run; ++j) lane[j % 4] += terms[j];
      return ((lane[0] + lane[1]) + (lane[2] + lane[3])) / float(run);
    };
    std::vector<float> squares(run), x0(run), out(run), g(run), products(run);
    for (int64_t j = 0; j < run; ++j) squares[j] = float(x[start + j]) * float(x[start + j]);
    const float rstd = 1 / std::sqrt(mean(squares) + 1e-5f);
    for (int64_t j = 0; j < run; ++j) {
      x0[j] = float(x[start + j]) * rstd;
      out[j] = x0[j] * float(layer.call.scale[start % features + j]);
      g[j] = float(dy[start + j]);
    }
    turn(out, 1);
    if (mistake != Mistake::NotTurnedBack) turn(g, -1);
    for (int64_t j = 0; j < run; ++j) {
      g[j] *= float(layer.call.scale[start % features + j]);
      products[j] = g[j] * x0[j];
    }
    const float second = mean(products);
    for (int64_t j = 0; j < run; ++j) {
      y[start + j] = round(out[j], data);
      dx[start + j] = round(rstd * (g[j] - x0[j] * second), data);
    }
  }
  return {{"y", y}, {"dx", dx}};
}

// The outputs that disagree.
std::string disagreements(const Rope& rope, HardInput input, DType data, Mistake mistake = Mistake::None) {
  const Extents extents{1, 40, 32};
  Spec spec = rmsNorm();
  spec.groups = rope.groups;
  spec.rope = rope;
  Layer layer(spec, extents);
  layer.problem.data = data, layer.problem.params = DType::F32;
  layer.call.scale = normalValues(32, DType::F32, 1, 1);
  layer.call.ropeCos = normalValues(layer.elements(kRopeCos), DType::F32, 2);
  layer.call.ropeSin = normalValues(layer.elements(kRopeSin), DType::F32, 3);
  const Vector x = hardInput(input, extents, data), dy = normalValues(40 * 32, data, 4);
  ReferenceResult want = layer.forward(x);
  want.outputs.merge(layer.backward(dy).outputs);
  std::string out;
  for (const auto& [name, values] : inFloats(layer, x, dy, mistake)) {
    const Agreement agreement =
        compare(want.outputs.at(name), values, toleranceOf(layer.problem, name, extents));
    if (!agreement.ok) out += name + " ";
  }
  return out;
}

std::vector<Rope> ropes() {
  std::vector<Rope> out;
  for (const Pairs pairs : {Pairs::Half, Pairs::Interleaved})
    for (const int64_t groups : {1, 4})
      for (const bool some : {false, true}) {
        out.push_back({.pairs = pairs, .groups = {groups, ""}});
        if (some) out.back().features = 4;
      }
  return out;
}

TEST(ReferenceRopeMagnitude, HonestFloatsPassOnEveryHardInput) {
  for (const Rope& rope : ropes())
    for (const HardInput input : allHardInputs())
      for (const DType data : {DType::F32, DType::BF16, DType::F16})
        EXPECT_EQ(disagreements(rope, input, data), "") << name(input) << " of " << name(data);
}

TEST(ReferenceRopeMagnitude, MistakesFail) {
  for (const Rope& rope : ropes())
    for (const DType data : {DType::F32, DType::BF16}) {
      const auto of = [&](Mistake mistake) { return disagreements(rope, HardInput::Normal, data, mistake); };
      EXPECT_EQ(of(Mistake::OtherSign), "dx y ");
      EXPECT_EQ(of(Mistake::OtherPairs), "dx y ");
      EXPECT_EQ(of(Mistake::TablesOfTheFirstRow), "dx y ");
      EXPECT_EQ(of(Mistake::NotTurnedBack), "dx ");
      if (rope.features) EXPECT_EQ(of(Mistake::AllFeatures), "dx y ");
    }
}

TEST(ReferenceRopeMagnitude, IsNeverBelowTheValue) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Layer layer = randomLayer(randomRopeSpec(seed), seed);
    ReferenceResult result = layer.forward(random(96, seed));
    result.outputs.merge(layer.backward(random(96, seed + 1)).outputs);
    for (const auto& [name, quantity] : result.outputs)
      for (size_t i = 0; i < quantity.value.size(); ++i)
        EXPECT_GE(quantity.magnitude[i], std::abs(quantity.value[i]) * (1 - 1e-12)) << name << " " << seed;
  }
}

}  // namespace
}  // namespace normc
