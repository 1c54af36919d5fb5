// Identities that the papers prove, and the explicit formulas of the variants that are not derivatives,
// compared with the closed form.
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr Extents kExtents{1, 6, 4};
constexpr int64_t kCount = 24;

double columnMean(const Vector& values, int64_t feature) {
  double sum = 0;
  for (int64_t row = 0; row < kExtents.rows; ++row) sum += values[row * kExtents.features + feature];
  return sum / static_cast<double>(kExtents.rows);
}

Vector product(const Vector& a, const Vector& b) {
  Vector out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i];
  return out;
}

// a[row, feature] * b[feature]
Vector byFeature(const Vector& a, const Vector& b) {
  Vector out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] * b[i % b.size()];
  return out;
}

TEST(ReferenceIdentity, GradientOfPowerNormVIsOrthogonalToItsOutput) {  // Lemma 2
  Spec spec = powerNormV();
  spec.scale = spec.bias = false;
  for (double epsilon : {1e-14, 0.5}) {
    spec.epsilon = epsilon;
    Layer layer(spec, kExtents);
    const Vector xhat = values(layer.forward(random(kCount, 1, 2)), "y"), dy = random(kCount, 2);
    const Vector dx = values(layer.backward(dy), "dx");
    for (int64_t feature = 0; feature < kExtents.features; ++feature) {
      // mean(dx xhat) = s mean(dy xhat) (1 - q s^2), and 1 - q s^2 = eps s^2.
      const double s = layer.call.saved.at("rstd")[feature];
      const double left = s * columnMean(product(dy, xhat), feature) * epsilon * s * s;
      EXPECT_NEAR(columnMean(product(dx, xhat), feature), left, 1e-14);
    }
  }
}

TEST(ReferenceIdentity, GradientOfBatchNormSumsToZeroAndIsOrthogonal) {
  Spec spec = batchNorm();
  spec.epsilon = 1e-14;
  spec.scale = spec.bias = false;
  Layer layer(spec, kExtents);
  const Vector xhat = values(layer.forward(random(kCount, 1, 2)), "y");
  const Vector dx = values(layer.backward(random(kCount, 2)), "dx");
  for (int64_t feature = 0; feature < kExtents.features; ++feature) {
    EXPECT_NEAR(columnMean(dx, feature), 0, 1e-14);
    EXPECT_NEAR(columnMean(product(dx, xhat), feature), 0, 1e-12);
  }
}

TEST(ReferenceIdentity, NuFromFeatureSumsEqualsNuFromAllElements) {
  Layer layer(powerNorm(), kExtents);
  layer.call.scale = {1, 2, -0.5, 3};
  layer.call.state["psi2"] = {0.5, 1, 2, 4};
  layer.call.state["nu"] = {0.1, -0.2, 0.3, 0};
  const Vector nu = layer.call.state["nu"];
  layer.forward(random(kCount, 3, 1));
  const Vector dy = random(kCount, 4);
  const Vector dscale = values(layer.backward(dy), "dscale");
  for (int64_t feature = 0; feature < kExtents.features; ++feature) {
    const double q = columnMean(product(layer.call.x, layer.call.x), feature);
    const double s = layer.call.saved.at("rstd")[feature];
    const double lambda = layer.call.scale[feature] * dscale[feature] / 6, gamma = q * s * s;
    EXPECT_NEAR(layer.state("nu", feature), nu[feature] * (1 - 0.1 * gamma) + 0.1 * lambda, 1e-14);
  }
}

TEST(ReferenceIdentity, NuMovesTowardsWhereTheGradientIsOrthogonal) {
  // One step with decay 0 and Gamma = 1 lands on nu = Lambda, which leaves h - nu x0 orthogonal to x0.
  Spec spec = powerNorm();
  spec.epsilon = 0;
  spec.approximate.decay = 0;
  Layer layer(spec, {1, 2, 1});
  layer.call.state["psi2"] = {5};
  for (int step = 0; step < 2; ++step) {
    layer.call.state["psi2"] = {5};  // the mean of 1 and 9
    layer.forward({1, 3});
    const Vector dx = values(layer.backward({2, 1}), "dx");
    if (step == 1) {
      EXPECT_NEAR(dx[0] * 1 + dx[1] * 3, 0, 1e-15);
    }
  }
}

TEST(ReferenceIdentity, PowerNormIsPowerNormVWhileWarm) {
  Spec warm = powerNorm();
  warm.warmup = Spec::Warmup{.steps = 1, .accumulate = Accumulate::Decay};
  Layer a(warm, kExtents), b(powerNormV(), kExtents);
  const Vector x = random(kCount, 5);
  expectNear(values(a.forward(x), "y"), values(b.forward(x), "y"), 0);
}

// The released module, as its authors wrote it: n is stored instead of nu, n = nu / (1 - a),
// s_B divides the gradient, nu's mean runs over all rows.
TEST(ReferenceIdentity, ReleasedFormKeepsNuOverOneMinusDecay) {
  constexpr double a = 0.9, epsilon = 1e-5;
  constexpr int64_t features = kExtents.features;
  for (const double warmup : {0.0, 2.0, 10.0}) {
    Layer layer(powerNormReleased(warmup), kExtents, true);
    layer.call.mask = {1, 1, 0, 1, 0, 1};
    layer.call.scale = {1, 2, 0.5, -1};
    Vector phi(features, 1), n(features, 0);
    for (int step = 1; step <= 5; ++step) {
      const Vector x = random(kCount, 10 * step, 0.5), dy = random(kCount, 10 * step + 1);
      Vector u = x, factor(kCount);
      for (int64_t first = 0; first < kCount; first += 2) {  // two groups of two features
        const double r = 1 / std::sqrt((x[first] * x[first] + x[first + 1] * x[first + 1]) / 2 + epsilon);
        for (int64_t i = first; i < first + 2; ++i) u[i] = x[i] * r, factor[i] = r;
      }
      Vector q(features, 0), s(features), batchScale(features);
      for (int64_t i = 0; i < kCount; ++i) q[i % features] += layer.call.mask[i / features] * u[i] * u[i] / 4;
      for (int64_t c = 0; c < features; ++c) {
        batchScale[c] = 1 / std::sqrt(q[c] + epsilon);
        s[c] = step <= warmup ? batchScale[c] : 1 / std::sqrt(phi[c] + epsilon);
        if (step < warmup) phi[c] = phi[c] * (step - 1) / step + q[c] / step;
        phi[c] = a * phi[c] + (1 - a) * q[c];
      }
      const Vector z = byFeature(u, s);
      const ReferenceResult forward = layer.forward(x);
      expectNear(values(forward, "y"), byFeature(z, layer.call.scale), 1e-13);
      expectNear(values(forward, "state.psi2"), phi, 1e-14);

      const Vector g = byFeature(dy, layer.call.scale);
      Vector corrected(kCount);
      for (int64_t i = 0; i < kCount; ++i) corrected[i] = g[i] - (1 - a) * n[i % features] * z[i];
      for (int64_t c = 0; c < features; ++c) n[c] += columnMean(product(corrected, z), c);
      const Vector du = byFeature(corrected, batchScale);
      Vector dx(kCount);
      for (int64_t first = 0; first < kCount; first += 2) {
        const double mean = (du[first] * u[first] + du[first + 1] * u[first + 1]) / 2;
        for (int64_t i = first; i < first + 2; ++i) dx[i] = factor[i] * (du[i] - u[i] * mean);
      }
      const ReferenceResult backward = layer.backward(dy);
      expectNear(values(backward, "dx"), dx, 1e-12);
      for (int64_t c = 0; c < features; ++c) EXPECT_NEAR(layer.state("nu", c), (1 - a) * n[c], 1e-14);
    }
  }
}

// MABN and UN as their authors wrote them, over enough steps to fill the windows and pass every switch.
TEST(ReferenceIdentity, WindowedNormsFollowTheirReleasedLoops) {
  constexpr int64_t features = kExtents.features, window = 3;
  constexpr double epsilon = 1e-5, a = 0.9;
  for (const bool unified : {false, true}) {
    SCOPED_TRACE(unified);
    Spec spec = unified ? unifiedNorm(window, 6) : mabn(window, 6);
    spec.warmup = Spec::Warmup{.steps = 5, .accumulate = Accumulate::Decay};
    Layer layer(spec, kExtents);
    layer.call.scale = {1, 2, 0.5, -1};
    Vector running(features, 1), average(features, 0), ringX(window * features, 0),
        ringG(window * features, 0);
    for (int t = 1; t <= 9; ++t) {
      const Vector x = random(kCount, 10 * t, 0.5), dy = random(kCount, 10 * t + 1);
      const bool alone = t <= window || t < 5;
      Vector s(features), r(features, 1);
      for (int64_t c = 0; c < features; ++c) {
        const double q = columnMean(product(x, x), c);
        ringX[(t - 1) % window * features + c] = q;
        double var = q;
        if (!alone) {
          const double x0 = ringX[c], x1 = ringX[features + c], x2 = ringX[2 * features + c];
          var = unified ? std::cbrt(x0 * x1 * x2) : (x0 + x1 + x2) / 3;
        }
        s[c] = 1 / std::sqrt(var + epsilon);
        if (t > 6) r[c] = std::clamp(std::sqrt(var + epsilon) / std::sqrt(running[c] + epsilon), 0.2, 5.0);
        running[c] = a * running[c] + (1 - a) * var;
      }
      const Vector z = byFeature(x, s);
      const ReferenceResult forward = layer.forward(x);
      const Vector y = byFeature(z, layer.call.scale);
      expectNear(values(forward, "y"), unified ? y : byFeature(y, r), 1e-13);
      expectNear(values(forward, "state.psi2"), running, 1e-13);
      expectNear(values(forward, "state.window_psi2"), ringX, 1e-13);

      const Vector h = byFeature(byFeature(dy, layer.call.scale), r);
      Vector kappa(features), dscale(features), dx(kCount);
      for (int64_t c = 0; c < features; ++c) {
        const double now = columnMean(product(h, z), c);
        ringG[(t - 1) % window * features + c] = now;
        const double mean = (ringG[c] + ringG[features + c] + ringG[2 * features + c]) / 3;
        kappa[c] = alone ? now : mean;
        average[c] = a * average[c] + (1 - a) * kappa[c];
        if (unified) kappa[c] = average[c];
        dscale[c] = 6 * r[c] * columnMean(product(dy, z), c);
      }
      for (int64_t i = 0; i < kCount; ++i) dx[i] = s[i % features] * (h[i] - z[i] * kappa[i % features]);
      const ReferenceResult backward = layer.backward(dy);
      expectNear(values(backward, "dx"), dx, 1e-12);
      expectNear(values(backward, "dscale"), dscale, 1e-12);
      expectNear(values(backward, "state.window_nu"), ringG, 1e-13);
      if (unified) expectNear(values(backward, "state.nu"), average, 1e-13);
    }
  }
}

TEST(ReferenceIdentity, BatchRenormWithoutRoomIsBatchNorm) {
  Spec spec = batchRenorm();
  spec.renorm.rmax = 1;
  spec.renorm.dmax = 0;
  Layer a(spec, kExtents), b(batchNorm(), kExtents);
  a.call.state["running_std"] = Vector(4, 3);
  const Vector x = random(kCount, 6, 1), dy = random(kCount, 7);
  expectNear(values(a.forward(x), "y"), values(b.forward(x), "y"), 0);
  expectNear(values(a.backward(dy), "dx"), values(b.backward(dy), "dx"), 0);
}

TEST(ReferenceIdentity, AnOffsetIsAddedToTheScaleAndLeavesItsGradientAlone) {
  for (Spec spec : {layerNorm(), rmsNorm(), batchNorm(), powerNorm(), batchRenorm(), unifiedNorm(2, 0)}) {
    SCOPED_TRACE(spec.name);
    Layer b(spec, kExtents);
    spec.scaleOffset = 1;
    Layer a(spec, kExtents);
    a.call.scale = {0.25, -0.5, -1, 1.125};
    b.call.scale = {1.25, 0.5, 0, 2.125};
    for (uint64_t step = 1; step < 4; ++step) {
      const Vector x = random(kCount, 10 * step, 0.5), dy = random(kCount, 10 * step + 1);
      EXPECT_EQ(values(a.forward(x), "y"), values(b.forward(x), "y"));
      const ReferenceResult offset = a.backward(dy), plain = b.backward(dy);
      for (const char* output : {"dx", "dscale", "dbias"})
        EXPECT_EQ(values(offset, output), values(plain, output)) << output;
    }
    EXPECT_EQ(a.call.state, b.call.state);
    EXPECT_EQ(values(a.infer(random(kCount, 9)), "y"), values(b.infer(random(kCount, 9)), "y"));
  }
}

TEST(ReferenceIdentity, AnOffsetIsANumberOfTheCall) {
  Spec spec = rmsNorm();
  spec.scaleOffset = 1;
  Layer a(spec, kExtents), b(rmsNorm(), kExtents);
  a.call.numbers["scale_offset"] = 0;
  const Vector x = random(kCount, 1);
  EXPECT_EQ(values(a.forward(x), "y"), values(b.forward(x), "y"));
}

TEST(ReferenceIdentity, ScaledInputsGiveTheSameOutput) {
  for (Spec spec : {layerNorm(), rmsNorm(), batchNorm(), powerNormV()}) {
    spec.epsilon = 1e-300;
    Layer a(spec, kExtents), b(spec, kExtents);
    Vector x = random(kCount, 8, 0.5);
    const Vector y = values(a.forward(x), "y");
    for (double& each : x) each *= 1024;
    expectNear(values(b.forward(x), "y"), y, 1e-14);
  }
}

}  // namespace
}  // namespace normc
