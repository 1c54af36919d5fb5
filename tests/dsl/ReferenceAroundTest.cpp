// What surrounds a norm: small cases by hand, identities with bare norms, and rows that are padded.
#include <limits>

#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Extents kExtents{2, 3, 4};
constexpr int64_t kCount = 24;

Vector sum(const Vector& a, const Vector& b, double factor = 1) {
  Vector out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = a[i] + factor * b[i];
  return out;
}

// RMS norm of one row with s = 1/4 for the row 3, 4: x0 = 3/4, 1.
Spec quarter() {
  Spec spec = rmsNorm();
  spec.scale = false;
  spec.epsilon = 3.5;
  return spec;
}

TEST(ReferenceAround, AResidualByHand) {
  Spec spec = quarter();
  spec.residual = Spec::Residual{};
  Layer layer(spec, {1, 1, 2});
  layer.call.residual = {1, 6};
  // h = 3, 4.
  const ReferenceResult forward = layer.forward({2, -2});
  expectNear(values(forward, "residual_out"), {3, 4}, 0);
  expectNear(values(forward, "y"), {0.75, 1});
  // dy = 4, 2: mean(dy x0) = (3 + 2) / 2, dh = 1/4 [4 - 3/4 * 5/2], 1/4 [2 - 5/2], and dresidual_out = 1, 2.
  layer.call.dresidualOut = {1, 2};
  const ReferenceResult backward = layer.backward({4, 2});
  expectNear(values(backward, "dx"), {17.0 / 32 + 1, -1.0 / 8 + 2});
  EXPECT_FALSE(backward.outputs.contains("dresidual"));  // it is dx
  layer.call.dresidualOut.clear();
  expectNear(values(layer.backward({4, 2}), "dx"), {17.0 / 32, -1.0 / 8});
}

TEST(ReferenceAround, AGateBeforeByHand) {
  Spec spec = quarter();
  spec.gate = Spec::Gate{.function = Activation::None, .side = Side::Before, .per = Per::Feature};
  spec.residual = Spec::Residual{};
  Layer layer(spec, {1, 1, 2});
  layer.call.gate = {2, -1}, layer.call.residual = {-1, 2};
  // h = 2 * 2 - 1, -1 * -2 + 2 = 3, 4, as above.
  expectNear(values(layer.forward({2, -2}), "residual_out"), {3, 4}, 0);
  const ReferenceResult backward = layer.backward({4, 2});
  expectNear(values(backward, "dresidual"), {17.0 / 32, -1.0 / 8});
  expectNear(values(backward, "dx"), {2 * 17.0 / 32, 1.0 / 8});
  expectNear(values(backward, "dgate"), {2 * 17.0 / 32, 2.0 / 8});
}

TEST(ReferenceAround, AGateAndAModulationBehindTheNormByHand) {
  Spec spec = quarter();
  spec.modulate = Spec::Modulate{.scale = true, .shift = true};
  spec.gate = Spec::Gate{.function = Activation::Sigmoid};
  spec.residual = Spec::Residual{.side = Side::After};
  Layer layer(spec, {1, 2, 2});
  layer.call.modScale = {1, -2}, layer.call.modShift = {0.5, 3};
  layer.call.gate = {0, std::log(3), 0, 0};
  layer.call.residual = {10, 20, 30, 40};
  // v = 3/4, 1 in both rows; m = 2 * 3/4 + 1/2, -1 * 1 + 3 = 2, 2; the gate is 1/2, 3/4 and 1/2, 1/2.
  expectNear(values(layer.forward({3, 4, 3, 4}), "y"), {11, 21.5, 31, 41});
  // dm = 8 / 2, 16 * 3/4 and 8 / 2, 0 / 2 = 4, 12 and 4, 0; G = 2 * 4, -1 * 12 and 8, 0.
  // Row 0: mean(G x0) = (6 - 12) / 2 = -3, dx = 1/4 [8 + 9/4], 1/4 [-12 + 3].
  // Row 1: mean(G x0) = 3, dx = 1/4 [8 - 9/4], 1/4 [0 - 3].
  const ReferenceResult backward = layer.backward({8, 16, 8, 0});
  expectNear(values(backward, "dx"), {41.0 / 16, -9.0 / 4, 23.0 / 16, -3.0 / 4});
  expectNear(values(backward, "dmod_scale"), {4 * 0.75 + 4 * 0.75, 12});
  expectNear(values(backward, "dmod_shift"), {8, 12});
  // dz = dy m sigma (1 - sigma).
  expectNear(values(backward, "dgate"), {8 * 2 / 4.0, 16 * 2 * 3 / 16.0, 8 * 2 / 4.0, 0});
  EXPECT_FALSE(backward.outputs.contains("dresidual"));  // it is dy
}

TEST(ReferenceAround, ASumOfSquaresByHand) {
  Spec spec = quarter();
  spec.moment = Moment::Sum;
  spec.epsilon = 11;
  Layer layer(spec, {1, 1, 2});
  // 9 + 16 + 11 = 36: s = 1/6, x0 = 1/2, 2/3.
  const ReferenceResult forward = layer.forward({3, 4});
  expectNear(values(forward, "y"), {0.5, 2.0 / 3});
  // dy = 2, 3: the sum of dy x0 is 3, dx = 1/6 [2 - 3/2], 1/6 [3 - 2].
  expectNear(values(layer.backward({2, 3}), "dx"), {1.0 / 12, 1.0 / 6});
}

// h, x0 and dh of a residual are those of the bare norm of the sum.
TEST(ReferenceAround, AResidualBeforeIsTheNormOfTheSum) {
  for (Spec spec : {layerNorm(), rmsNorm(), batchNorm(), powerNorm(), mabn(2, 1), unifiedNorm(2, 1),
                    powerNormReleased(3)}) {
    SCOPED_TRACE(spec.name);
    Layer bare(spec, kExtents);
    spec.residual = Spec::Residual{};
    Layer layer(spec, kExtents);
    spec.residual->stream = false;
    Layer dry(spec, kExtents);
    for (uint64_t step = 1; step < 5; ++step) {
      const Vector x = random(kCount, step), r = random(kCount, step + 10), dy = random(kCount, step + 20);
      const Vector ds = random(kCount, step + 30), h = sum(x, r);
      layer.call.residual = dry.call.residual = r;
      const Vector y = values(bare.forward(h), "y");
      EXPECT_EQ(values(layer.forward(x), "y"), y);
      EXPECT_EQ(layer.call.residualOut, h);
      const ReferenceResult forward = dry.forward(x);
      EXPECT_EQ(values(forward, "y"), y);
      EXPECT_FALSE(forward.outputs.contains("residual_out"));
      layer.call.dresidualOut = ds;
      layer.call.x.clear(), layer.call.residual.clear();  // it has h
      const Vector dx = values(bare.backward(dy), "dx");
      EXPECT_EQ(values(layer.backward(dy), "dx"), sum(dx, ds));
      EXPECT_EQ(values(dry.backward(dy), "dx"), dx);
      EXPECT_EQ(layer.call.state, bare.call.state);
      EXPECT_EQ(dry.call.state, bare.call.state);
    }
  }
}

TEST(ReferenceAround, AModulationThatIsTheSameEverywhereIsAnAffine) {
  for (Spec spec : {layerNorm(), batchNorm(), powerNorm()}) {
    Layer affine(spec, kExtents);
    spec.scale = spec.bias = false;
    spec.modulate = Spec::Modulate{.scale = true, .shift = true, .per = Per::Segment, .offset = 0};
    Layer layer(spec, kExtents);
    const Vector w = random(4, 1, 1), b = random(4, 2), x = random(kCount, 3), dy = random(kCount, 4);
    affine.call.scale = w, affine.call.bias = b;
    for (Vector* all : {&layer.call.modScale, &layer.call.modShift}) all->clear();
    for (int segment = 0; segment < 2; ++segment) {
      layer.call.modScale.insert(layer.call.modScale.end(), w.begin(), w.end());
      layer.call.modShift.insert(layer.call.modShift.end(), b.begin(), b.end());
    }
    expectNear(values(layer.forward(x), "y"), values(affine.forward(x), "y"));
    const ReferenceResult got = layer.backward(dy), want = affine.backward(dy);
    expectNear(values(got, "dx"), values(want, "dx"));
    const auto overSegments = [](const Vector& each) {
      return sum({each.begin(), each.begin() + 4}, {each.begin() + 4, each.end()});
    };
    expectNear(overSegments(values(got, "dmod_scale")), values(want, "dscale"));
    expectNear(overSegments(values(got, "dmod_shift")), values(want, "dbias"));
    EXPECT_EQ(layer.call.state, affine.call.state);
  }
}

TEST(ReferenceAround, AnIdentityGateOfAMaskIsADropout) {
  Spec spec = layerNorm();
  spec.residual = Spec::Residual{};
  Layer plain(spec, kExtents);
  spec.gate = Spec::Gate{.function = Activation::None, .side = Side::Before};
  Layer layer(spec, kExtents);
  const Vector x = random(kCount, 1), r = random(kCount, 2), dy = random(kCount, 3);
  Vector kept = x;
  for (int64_t i = 0; i < kCount; ++i) {
    layer.call.gate[i] = i % 4 == 1 ? 0 : 4.0 / 3;
    kept[i] *= layer.call.gate[i];
  }
  layer.call.residual = plain.call.residual = r;
  expectNear(values(layer.forward(x), "y"), values(plain.forward(kept), "y"));
  const Vector got = values(layer.backward(dy), "dx"), dh = values(plain.backward(dy), "dx");
  for (int64_t i = 0; i < kCount; ++i) EXPECT_NEAR(got[i], dh[i] * layer.call.gate[i], 1e-14);
}

TEST(ReferenceAround, AResidualAfterIsAddedToTheBareNorm) {
  for (Spec spec : {layerNorm(), batchNorm(), unifiedNorm(2, 1)}) {
    Layer bare(spec, kExtents);
    spec.residual = Spec::Residual{.side = Side::After};
    Layer layer(spec, kExtents);
    const Vector x = random(kCount, 1), dy = random(kCount, 2);
    layer.call.residual = random(kCount, 3);
    const Vector y = values(bare.forward(x), "y");
    EXPECT_EQ(values(layer.forward(x), "y"), sum(y, layer.call.residual));
    layer.call.residual.clear();  // backward does not need it
    EXPECT_EQ(values(layer.backward(dy), "dx"), values(bare.backward(dy), "dx"));
  }
}

TEST(ReferenceAround, ASumOfSquaresGivesLengthOne) {
  Spec spec = quarter();
  spec.moment = Moment::Sum;
  spec.epsilon = 1e-300;
  Layer layer(spec, {1, 6, 4});
  const Vector y = values(layer.forward(random(kCount, 1)), "y");
  const Vector dx = values(layer.backward(random(kCount, 2)), "dx");
  for (int64_t row = 0; row < 6; ++row) {
    double length = 0, along = 0;
    for (int64_t i = 4 * row; i < 4 * row + 4; ++i) length += y[i] * y[i], along += y[i] * dx[i];
    EXPECT_NEAR(length, 1, 1e-14);
    EXPECT_NEAR(along, 0, 1e-14);
  }
}

// s of a sum is that of the mean with epsilon / n, over the root of n.
TEST(ReferenceAround, ASumOfSquaresIsAMeanInAnotherUnit) {
  for (const EpsilonMode mode : {EpsilonMode::Add, EpsilonMode::Max}) {
    Spec spec = quarter();
    spec.epsilonMode = mode;
    spec.epsilon = 0.25;
    Layer mean(spec, kExtents);
    spec.moment = Moment::Sum;
    spec.epsilon = 1;
    Layer total(spec, kExtents);
    const Vector x = random(kCount, 1), dy = random(kCount, 2);
    Vector y = values(total.forward(x), "y"), dx = values(total.backward(dy), "dx");
    for (Vector* all : {&y, &dx})
      for (double& each : *all) each *= 2;
    expectNear(y, values(mean.forward(x), "y"));
    expectNear(dx, values(mean.backward(dy), "dx"));
  }
}

// What stands around an approximate norm is exact: its state moves as if dy were G.
TEST(ReferenceAround, AnApproximateNormSeesTheGradientBehindIt) {
  for (Spec spec : {powerNorm(), mabn(2, 1), unifiedNorm(2, 1), powerNormReleased(2)}) {
    SCOPED_TRACE(spec.name);
    Layer bare(spec, kExtents);
    spec.modulate = Spec::Modulate{.scale = true, .per = Per::Row, .offset = 1};
    spec.gate = Spec::Gate{.function = Activation::None};
    Layer layer(spec, kExtents);
    for (uint64_t step = 1; step < 5; ++step) {
      const Vector x = random(kCount, step), dy = random(kCount, step + 10);
      fillAround(layer, step);
      Vector g = dy;
      for (int64_t i = 0; i < kCount; ++i) g[i] *= layer.call.gate[i] * (1 + layer.call.modScale[i]);
      layer.forward(x), bare.forward(x);
      const ReferenceResult got = layer.backward(dy), want = bare.backward(g);
      for (const char* output : {"dx", "dscale", "dbias"})
        expectNear(values(got, output), values(want, output), 1e-12);
      for (const auto& [field, after] : bare.call.state) expectNear(layer.call.state.at(field), after, 1e-12);
    }
  }
}

TEST(ReferenceAround, TheOffsetOfAModulationIsANumberOfTheCall) {
  Spec spec = layerNorm();
  spec.modulate = Spec::Modulate{.scale = true};
  Layer layer(spec, kExtents);
  const Vector x = random(kCount, 1), y = values(layer.forward(x), "y");
  layer.call.numbers["mod_offset"] = 0;
  layer.call.modScale = Vector(8, 1);
  EXPECT_EQ(values(layer.forward(x), "y"), y);
}

// Everything that surrounds a norm at once.
Spec surrounded(Spec spec, Side gate, Per per) {
  spec.residual = Spec::Residual{.side = gate};
  spec.gate = Spec::Gate{.function = Activation::Sigmoid, .side = gate, .per = per};
  spec.modulate = Spec::Modulate{.scale = true, .shift = true, .per = Per::Row};
  spec.activation = Activation::Sigmoid;  // psi(0) is not 0
  return spec;
}

TEST(ReferenceAround, ExcludedRowsMightAsWellNotBeThere) {
  for (const Side gate : {Side::After, Side::Before})
    for (const Per per : {Per::Row, Per::Segment, Per::Feature})
      for (Spec spec : {batchNorm(), powerNorm(), mabn(2, 1), layerNorm(), rmsNorm()}) {
        SCOPED_TRACE(spec.name);
        spec.padding = Padding::Exclude;
        spec = surrounded(spec, gate, per);
        Layer padded(spec, {1, 4, 2}, true), dense(spec, {1, 2, 2});
        padded.call.mask = {1, 0, 0, 1};
        const auto withPadding = [](const Vector& all, double filling) {
          return Vector{all[0], all[1], filling, filling, filling, filling, all[2], all[3]};
        };
        for (uint64_t step = 0; step < 3; ++step) {
          fillAround(dense, 5 + 20 * step);
          for (const Tensor tensor : {kResidual, kGate, kModScale, kModShift, kDresidualOut}) {
            const Vector& values = dense.input(tensor);
            padded.input(tensor) = values.size() == 4 ? withPadding(values, kNan) : values;
          }
          const Vector x = random(4, 1 + 20 * step), dy = random(4, 2 + 20 * step);
          const ReferenceResult forward = padded.forward(withPadding(x, kNan)), want = dense.forward(x);
          expectNear(values(forward, "y"), withPadding(values(want, "y"), 0), 0);
          if (gate == Side::Before)
            expectNear(values(forward, "residual_out"), withPadding(values(want, "residual_out"), 0), 0);
          const ReferenceResult got = padded.backward(withPadding(dy, kNan)), expected = dense.backward(dy);
          for (const auto& [name, quantity] : expected.outputs) {
            SCOPED_TRACE(name);
            const bool ofRows = got.outputs.at(name).value.size() == 8;
            expectNear(values(got, name), ofRows ? withPadding(quantity.value, 0) : quantity.value, 0);
          }
          EXPECT_EQ(padded.call.state, dense.call.state);
        }
      }
}

TEST(ReferenceAround, RowsLeftOutOfTheStatisticsHaveEverything) {
  Spec spec = surrounded(powerNorm(), Side::Before, Per::Segment);
  spec.backward = Backward::Frozen;
  spec.padding = Padding::LeaveOutOfStatistics;
  Layer padded(spec, kExtents, true), dense(spec, kExtents);
  padded.call.mask = {1, 0, 0, 1, 1, 0};
  fillAround(padded, 1), fillAround(dense, 1);
  const Vector x = random(kCount, 2), dy = random(kCount, 3);
  for (const char* output : {"y", "residual_out"})
    EXPECT_EQ(values(padded.forward(x), output), values(dense.infer(x), output));
  dense.forward(x);
  padded.call.saved = dense.call.saved;
  padded.call.saved["count"] = {3};
  const ReferenceResult got = padded.backward(dy), want = dense.backward(dy);
  for (const char* output : {"dx", "dresidual", "dgate", "dmod_scale", "dmod_shift", "dscale", "dbias"})
    expectNear(values(got, output), values(want, output), 1e-14);
}

TEST(ReferenceAround, NanStaysInItsSegment) {
  Spec spec = layerNorm();
  spec.modulate = Spec::Modulate{.scale = true};
  spec.gate = Spec::Gate{.function = Activation::Silu, .side = Side::Before, .per = Per::Segment};
  Layer layer(spec, {2, 1, 2});
  layer.call.gate = {kNan, 1, 1, 2};
  layer.call.modScale = {1, 1, 0, 1};
  const Vector y = values(layer.forward({1, 2, 3, 4}), "y");
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_TRUE(std::isfinite(y[2]) && std::isfinite(y[3]));
  const ReferenceResult backward = layer.backward({1, 2, 3, 4});
  for (const char* output : {"dgate", "dmod_scale"}) {
    EXPECT_TRUE(std::isnan(values(backward, output)[0])) << output;
    EXPECT_TRUE(std::isfinite(values(backward, output)[2])) << output;
  }
}

TEST(ReferenceAround, ACallWithoutRowsHasGradientsOfNothing) {
  Layer layer(surrounded(batchNorm(), Side::Before, Per::Feature), {1, 0, 2});
  layer.call.gate = {1, 2};
  EXPECT_TRUE(values(layer.forward({}), "residual_out").empty());
  const ReferenceResult backward = layer.backward({});
  expectNear(values(backward, "dgate"), {0, 0}, 0);
  EXPECT_TRUE(values(backward, "dresidual").empty());
}

}  // namespace
}  // namespace normc
