// Two rows, two features, worked out by hand. Epsilon is 0 or a number that
// makes the roots come out even.
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr Extents kTwoByTwo{1, 2, 2};

TEST(ReferenceByHand, BatchNormNormalizesEachFeature) {
  Spec spec = batchNorm();
  spec.epsilon = 3;
  Layer layer(spec, kTwoByTwo);
  layer.call.scale = {2, 1};
  layer.call.bias = {0.5, 0};
  // Feature 0: 1, 3: mean 2, variance ((-1)^2 + 1^2) / 2 = 1, s = (1 + 3)^-1/2 = 1/2, x0 = -1/2, 1/2.
  // Feature 1: 4, 4: mean 4, variance 0, s = 3^-1/2, x0 = 0.
  const ReferenceResult forward = layer.forward({1, 4, 3, 4});
  expectNear(values(forward, "y"), {2 * -0.5 + 0.5, 0, 2 * 0.5 + 0.5, 0});
  expectNear(values(forward, "saved.mean"), {2, 4});
  expectNear(values(forward, "saved.rstd"), {0.5, 1 / std::sqrt(3)});
  // decay 0.9: mean 0.9 * 0 + 0.1 * 2; variance 0.9 * 1 + 0.1 * 1.
  expectNear(values(forward, "state.running_mean"), {0.2, 0.4});
  expectNear(values(forward, "state.running_var"), {1.0, 0.9});

  // dy of feature 0: 1, 2, so h = 2, 4: mean(h) = 3, mean(h x0) = (2 * -1/2 + 4 * 1/2) / 2 = 1/2.
  //   dx = 1/2 [2 - 3 + 1/2 * 1/2], 1/2 [4 - 3 - 1/2 * 1/2] = -3/8, 3/8.
  // dy of feature 1: 1, 5: mean(h) = 3, mean(h x0) = 0: dx = (1 - 3) / sqrt 3, (5 - 3) / sqrt 3.
  const ReferenceResult backward = layer.backward({1, 1, 2, 5});
  expectNear(values(backward, "dx"), {-0.375, -2 / std::sqrt(3), 0.375, 2 / std::sqrt(3)});
  expectNear(values(backward, "dscale"), {1 * -0.5 + 2 * 0.5, 0});
  expectNear(values(backward, "dbias"), {3, 6});
}

TEST(ReferenceByHand, LayerNormNormalizesEachRow) {
  Spec spec = layerNorm();
  spec.epsilon = 3;
  Layer layer(spec, kTwoByTwo);
  layer.call.scale = {2, 4};
  layer.call.bias = {0, 1};
  // Row 0: 1, 3: x0 = -1/2, 1/2 as above. Row 1: 5, 5: x0 = 0, 0.
  const ReferenceResult forward = layer.forward({1, 3, 5, 5});
  expectNear(values(forward, "y"), {2 * -0.5, 4 * 0.5 + 1, 0, 1});
  expectNear(values(forward, "saved.mean"), {2, 5});

  // Row 0, dy = 1, 1: h = 2, 4: the numbers of BatchNorm's feature 0.
  // Row 1, dy = 1, 1: h = 2, 4, mean 3, x0 = 0: dx = (2 - 3) / sqrt 3, (4 - 3) / sqrt 3.
  const ReferenceResult backward = layer.backward({1, 1, 1, 1});
  expectNear(values(backward, "dx"), {-0.375, 0.375, -1 / std::sqrt(3), 1 / std::sqrt(3)});
  expectNear(values(backward, "dscale"), {-0.5, 0.5});
  expectNear(values(backward, "dbias"), {2, 2});
}

TEST(ReferenceByHand, RmsNormDividesByTheRootMeanSquare) {
  Spec spec = rmsNorm();
  spec.epsilon = 3.5;
  Layer layer(spec, kTwoByTwo);
  layer.call.scale = {1, 2};
  // Row 0: 3, 4: mean of squares 25/2, + 7/2 = 16, s = 1/4, x0 = 3/4, 1. Row 1: 1, 0: 1/2 + 7/2 = 4, s = 1/2.
  const ReferenceResult forward = layer.forward({3, 4, 1, 0});
  expectNear(values(forward, "y"), {0.75, 2, 0.5, 0});
  EXPECT_EQ(forward.outputs.count("saved.mean"), 0u);

  // Row 0, dy = 4, 1: h = 4, 2, mean(h x0) = (3 + 2) / 2 = 5/2, dx = 1/4 [4 - 3/4 * 5/2], 1/4 [2 - 5/2].
  // Row 1, dy = 2, 3: h = 2, 6, mean(h x0) = (1 + 0) / 2 = 1/2, dx = 1/2 [2 - 1/2 * 1/2], 1/2 * 6.
  const ReferenceResult backward = layer.backward({4, 1, 2, 3});
  expectNear(values(backward, "dx"), {17.0 / 32, -1.0 / 8, 7.0 / 8, 3});
  expectNear(values(backward, "dscale"), {4 * 0.75 + 2 * 0.5, 1 * 1 + 0});
  EXPECT_TRUE(values(backward, "dbias").empty());
}

TEST(ReferenceByHand, AnOffsetIsAddedToTheScaleOfRmsNorm) {
  Spec spec = rmsNorm();
  spec.epsilon = 3.5;
  spec.scaleOffset = 1;
  Layer layer(spec, kTwoByTwo);
  layer.call.scale = {0, 1};
  // As RmsNorm above, whose scale is 1, 2: so are y, dx and dscale.
  expectNear(values(layer.forward({3, 4, 1, 0}), "y"), {0.75, 2, 0.5, 0});
  const ReferenceResult backward = layer.backward({4, 1, 2, 3});
  expectNear(values(backward, "dx"), {17.0 / 32, -1.0 / 8, 7.0 / 8, 3});
  expectNear(values(backward, "dscale"), {4 * 0.75 + 2 * 0.5, 1 * 1 + 0});
}

TEST(ReferenceByHand, ReluEndsALayerNorm) {
  Spec spec = layerNorm();
  spec.epsilon = 3;
  spec.activation = Activation::Relu;
  Layer layer(spec, kTwoByTwo);
  layer.call.scale = {2, 4};
  layer.call.bias = {0, 1};
  // LayerNorm above: o = -1, 3 and 0, 1, of which the slopes are 0, 1 and 0, 1.
  expectNear(values(layer.forward({1, 3, 5, 5}), "y"), {0, 3, 0, 1});
  // G = 0, 1 in both rows: h = 0, 4, mean(h) = 2, mean(h x0) = 4 * 1/2 / 2 = 1 in row 0, 0 in row 1.
  //   dx = 1/2 [0 - 2 + 1/2], 1/2 [4 - 2 - 1/2]; (0 - 2) / sqrt 3, (4 - 2) / sqrt 3.
  const ReferenceResult backward = layer.backward({1, 1, 1, 1});
  expectNear(values(backward, "dx"), {-0.75, 0.75, -2 / std::sqrt(3), 2 / std::sqrt(3)});
  expectNear(values(backward, "dscale"), {0, 0.5});
  expectNear(values(backward, "dbias"), {0, 2});
}

TEST(ReferenceByHand, SigmoidEndsABatchNorm) {
  Spec spec = batchNorm();
  spec.epsilon = 3;
  spec.bias = false;
  spec.activation = Activation::Sigmoid;
  Layer layer(spec, {1, 2, 1});
  layer.call.scale = {2 * std::log(3)};
  // x0 = -1/2, 1/2: o = -log 3, log 3, y = 1/4, 3/4, the slope 3/16 in both.
  expectNear(values(layer.forward({1, 3}), "y"), {0.25, 0.75});
  // dy = 16, 32: G = 3, 6, mean(G) = 9/2, mean(G x0) = (6 - 3) / 4 = 3/4.
  //   dx = 1/2 scale [3 - 9/2 + 1/2 * 3/4], 1/2 scale [6 - 9/2 - 1/2 * 3/4], dscale = (6 - 3) / 2.
  const ReferenceResult backward = layer.backward({16, 32});
  expectNear(values(backward, "dx"), {-1.125 * std::log(3), 1.125 * std::log(3)});
  expectNear(values(backward, "dscale"), {1.5});
}

TEST(ReferenceByHand, PowerNormVDividesByTheMomentOfTheBatch) {
  Spec spec = powerNormV();
  spec.epsilon = 4;
  Layer layer(spec, {1, 2, 1});
  layer.call.scale = {3};
  layer.call.bias = {1};
  // 2, 4: q = (4 + 16) / 2 = 10, s = (10 + 4)^-1/2. Running: 0.9 * 1 + 0.1 * 10 = 1.9.
  const double s = 1 / std::sqrt(14);
  const ReferenceResult forward = layer.forward({2, 4});
  expectNear(values(forward, "y"), {6 * s + 1, 12 * s + 1});
  expectNear(values(forward, "state.psi2"), {1.9});
  EXPECT_EQ(layer.state("step"), 1);
  // dy = 1, 1: h = 3, 3; mean(h x0) = (6 s + 12 s) / 2 = 9 s; dx = s [3 - 2 s * 9 s], s [3 - 4 s * 9 s]
  //   = s [3 - 18/14], s [3 - 36/14].
  const ReferenceResult backward = layer.backward({1, 1});
  expectNear(values(backward, "dx"), {s * 24 / 14, s * 6 / 14});
  expectNear(values(backward, "dscale"), {6 * s});
  expectNear(values(backward, "dbias"), {2});
}

TEST(ReferenceByHand, PowerNormDividesByTheMomentBeforeTheStep) {
  Spec spec = powerNorm();
  spec.epsilon = 0;
  spec.running->decay = 0.5;
  spec.approximate.decay = 0.75;
  Layer layer(spec, {1, 2, 1});
  layer.call.scale = {2};

  // Step 1: psi2 = 1 before, so x0 = x = 1, sqrt 5; q = (1 + 5) / 2 = 3; psi2 = (1 + 3) / 2 = 2.
  const double root5 = std::sqrt(5);
  const ReferenceResult first = layer.forward({1, root5});
  expectNear(values(first, "y"), {2, 2 * root5});
  expectNear(values(first, "state.psi2"), {2});
  expectNear(values(first, "saved.rstd"), {1});
  // dy = 1, 0: h = 2, 0; nu = 0 before, so dx = s h = 2, 0 with the s of the forward, although psi2 is 2 by
  // now. Lambda = 2 * 1 / 2 = 1, Gamma = (1 + 5) / 2 = 3: nu = 0 * (1 - 3/4) + 1/4 * 1.
  const ReferenceResult firstBack = layer.backward({1, 0});
  expectNear(values(firstBack, "dx"), {2, 0});
  expectNear(values(firstBack, "dscale"), {1});
  expectNear(values(firstBack, "state.nu"), {0.25});

  // Step 2: s = 2^-1/2. x = 2, 2: x0 = sqrt 2, sqrt 2; y = 2 sqrt 2; q = 4; psi2 = (2 + 4) / 2 = 3.
  const double root2 = std::sqrt(2);
  const ReferenceResult second = layer.forward({2, 2});
  expectNear(values(second, "y"), {2 * root2, 2 * root2});
  expectNear(values(second, "state.psi2"), {3});
  // dy = 1, 2: h = 2, 4; dx = 2^-1/2 [2 - sqrt 2 / 4], 2^-1/2 [4 - sqrt 2 / 4] = sqrt 2 - 1/4, 2 sqrt 2 -
  // 1/4. Lambda = (2 sqrt 2 + 4 sqrt 2) / 2 = 3 sqrt 2, Gamma = 2: nu = 1/4 (1 - 2/4) + 3 sqrt 2 / 4.
  const ReferenceResult secondBack = layer.backward({1, 2});
  expectNear(values(secondBack, "dx"), {root2 - 0.25, 2 * root2 - 0.25});
  expectNear(values(secondBack, "state.nu"), {0.125 + 0.75 * root2});
  // Inference divides by the running value: 3^-1/2.
  expectNear(values(layer.infer({3, 6}), "y"), {2 * std::sqrt(3), 4 * std::sqrt(3)});
}

TEST(ReferenceByHand, ReleasedPowerNormDividesByTheBatchInAWarmStep) {
  Spec spec = powerNormReleased(4);
  spec.pre->groups.count = 1;
  spec.pre->epsilon = 1e-300;
  spec.epsilon = 0.44;
  Layer layer(spec, kTwoByTwo);
  layer.call.state["psi2"] = {7, 7};  // wiped by the cumulative mean of the first step
  layer.call.state["nu"] = {0.5, 0};
  layer.call.scale = {2, 1};
  // Group scaling: row 0: 3, 4 / sqrt(25/2); row 1: 5, 0 / sqrt(25/2). Squares of u: 18/25, 32/25; 2, 0.
  const double root = std::sqrt(12.5);
  // q = (0.72 + 2) / 2 = 1.36, (1.28 + 0) / 2 = 0.64; + 0.44: 1.8, 1.08.
  const double s0 = 1 / std::sqrt(1.8), s1 = 1 / std::sqrt(1.08);
  const ReferenceResult forward = layer.forward({3, 4, 5, 0});
  expectNear(values(forward, "y"), {2 * 3 / root * s0, 4 / root * s1, 2 * 5 / root * s0, 0});
  // First the mean over one step: q; then decay on top of it: 0.9 q + 0.1 q.
  expectNear(values(forward, "state.psi2"), {1.36, 0.64});

  // dy = 1, 0 / 0, 0: h = 2, 0 / 0, 0. du = s_B (h - nu x0), nu of feature 1 is 0:
  const double u00 = 3 / root, u01 = 4 / root, u10 = 5 / root;
  const double du00 = s0 * (2 - 0.5 * u00 * s0), du10 = s0 * (-0.5 * u10 * s0);
  // dx = (du - u mean(du u)) / root; in row 1, u = sqrt 2, 0: mean(du u) = du10 sqrt 2 / 2, so dx = 0.
  const double mean0 = du00 * u00 / 2;
  const ReferenceResult backward = layer.backward({1, 0, 0, 0});
  expectNear(values(backward, "dx"),
             {(du00 - u00 * mean0) / root, -u01 * mean0 / root, (du10 - u10 * du10 * u10 / 2) / root, 0});
  EXPECT_NEAR(values(backward, "dx")[2], 0, 1e-15);
  // Gamma = 1.36 / 1.8, Lambda = 2 * u00 s0 / 2.
  expectNear(values(backward, "state.nu"), {0.5 * (1 - 0.1 * 1.36 / 1.8) + 0.1 * u00 * s0, 0});
}

TEST(ReferenceByHand, BatchRenormCorrectsByTheRunningStatistics) {
  Spec spec = batchRenorm();
  spec.epsilon = 3;
  Layer layer(spec, {1, 2, 1});
  layer.call.state["running_mean"] = {1};
  layer.call.state["running_std"] = {4};
  // 1, 3: mean 2, deviation (1 + 3)^1/2 = 2, x0 = -1/2, 1/2; r = 2 / 4, shift = (2 - 1) / 4.
  const ReferenceResult forward = layer.forward({1, 3});
  expectNear(values(forward, "y"), {-0.25 + 0.25, 0.25 + 0.25});
  expectNear(values(forward, "saved.renorm_scale"), {0.5});
  expectNear(values(forward, "saved.renorm_shift"), {0.25});
  expectNear(values(forward, "state.running_mean"), {0.9 + 0.2});
  expectNear(values(forward, "state.running_std"), {0.9 * 4 + 0.1 * 2});
  // dy = 2, 4: h = 1, 2: mean 3/2, mean(h x0) = 1/4: dx = 1/2 [1 - 3/2 + 1/8], 1/2 [2 - 3/2 - 1/8].
  const ReferenceResult backward = layer.backward({2, 4});
  expectNear(values(backward, "dx"), {-3.0 / 16, 3.0 / 16});
  expectNear(values(backward, "dscale"), {2 * 0 + 4 * 0.5});
  // Inference has no epsilon: it is in the deviation. (5 - 1.1) / 3.8.
  expectNear(values(layer.infer({5, 1.1}), "y"), {3.9 / 3.8, 0});
}

}  // namespace
}  // namespace normc
