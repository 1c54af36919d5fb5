// Padded rows, batches of nothing, of one row, and values that are none.
#include <limits>

#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Spec> normsWithState() {
  return {batchNorm(),   powerNormV(), powerNorm(),      powerNormReleased(3),
          batchRenorm(), mabn(2, 2),   unifiedNorm(2, 2)};
}

TEST(ReferenceMask, ExcludedRowsMightAsWellNotBeThere) {
  std::vector<Spec> specs = normsWithState();
  for (Spec other : {layerNorm(), rmsNorm()}) specs.push_back(other);
  for (Spec active : std::vector(specs)) {
    active.activation = Activation::Sigmoid;  // psi(0) is not 0
    specs.push_back(active);
  }
  for (Spec spec : specs) {
    SCOPED_TRACE(spec.name);
    spec.padding = Padding::Exclude;
    Layer padded(spec, {1, 4, 2}, true), dense(spec, {1, 2, 2});
    padded.call.mask = {1, 0, 1, 0};
    padded.call.scale = dense.call.scale = {2, 3};
    for (int step = 0; step < 4; ++step) {
      const Vector a = random(4, step), g = random(4, step + 50);
      const Vector x = {a[0], a[1], kNan, 7, a[2], a[3], 1e30, kInfinity};
      const Vector dy = {g[0], g[1], 5, kNan, g[2], g[3], 1, 1};
      const ReferenceResult forward = padded.forward(x), denseForward = dense.forward(a);
      const Vector y = values(denseForward, "y");
      expectNear(values(forward, "y"), {y[0], y[1], 0, 0, y[2], y[3], 0, 0}, 0);
      const ReferenceResult backward = padded.backward(dy), denseBackward = dense.backward(g);
      const Vector dx = values(denseBackward, "dx");
      expectNear(values(backward, "dx"), {dx[0], dx[1], 0, 0, dx[2], dx[3], 0, 0}, 0);
      for (const char* sum : {"dscale", "dbias"})
        expectNear(values(backward, sum), values(denseBackward, sum), 0);
      EXPECT_EQ(padded.call.state, dense.call.state);
    }
  }
}

TEST(ReferenceMask, RowsLeftOutOfTheStatisticsAreTransformedAndHaveGradients) {
  Spec spec = powerNormV();
  spec.epsilon = 0;
  spec.padding = Padding::LeaveOutOfStatistics;
  Layer layer(spec, {1, 2, 1}, true);
  layer.call.mask = {1, 0};
  // q = 4 of the first row alone.
  expectNear(values(layer.forward({2, 6}), "y"), {1, 3});
  // mean(h x0) = (1 * 1 + 1 * 3) / 1, for the real row only: 1/2 [1 - 1 * 4], 1/2 * 1.
  expectNear(values(layer.backward({1, 1}), "dx"), {-1.5, 0.5});
  // nu's means are over both rows, and its term reaches both.
  spec.backward = Backward::Approximate;
  spec.divideBy = DivideBy::Running;
  Layer power(spec, {1, 2, 1}, true);
  power.call.mask = {1, 0};
  power.call.state["nu"] = {0.5};
  power.forward({2, 6});
  expectNear(values(power.backward({1, 1}), "dx"), {1 - 0.5 * 2, 1 - 0.5 * 6});
  EXPECT_NEAR(power.state("nu"), 0.5 * (1 - 0.1 * 20) + 0.1 * 4, 1e-15);
}

TEST(ReferenceMask, EachSegmentHasItsCount) {
  Layer layer(norm("instance_norm", Reduce::Segment, Center::Current, Moment::Central), {2, 3, 1}, true);
  layer.call.mask = {1, 0, 1, 0, 0, 1};
  EXPECT_EQ(values(layer.forward(random(6, 1)), "saved.count"), (Vector{2, 1}));
}

TEST(ReferenceMask, EmptyBatchIsNoStep) {
  for (const Padding padding : {Padding::Exclude, Padding::LeaveOutOfStatistics}) {
    for (Spec spec : normsWithState()) {
      SCOPED_TRACE(spec.name);
      spec.padding = padding;
      Layer layer(spec, {1, 3, 2}, true);
      for (int step = 0; step < 3; ++step) {
        layer.forward(random(6, step, 1));
        layer.backward(random(6, step + 9));
      }
      layer.call.mask = {0, 0, 0};
      const auto before = layer.call.state;
      const Vector x = random(6, 5), inferred = values(layer.infer(x), "y");
      expectNear(values(layer.forward(x), "y"), padding == Padding::Exclude ? Vector(6, 0) : inferred, 0);
      const ReferenceResult backward = layer.backward(random(6, 6));
      if (padding == Padding::Exclude) {
        expectNear(values(backward, "dx"), Vector(6, 0), 0);
        expectNear(values(backward, "dscale"), {0, 0}, 0);
      }
      EXPECT_EQ(layer.call.state, before);
    }
  }
}

TEST(ReferenceMask, EmptyBatchMayBeTheFirst) {
  for (const Spec& spec : normsWithState()) {
    SCOPED_TRACE(spec.name);
    Layer layer(spec, {1, 2, 2}, true);
    layer.call.mask = {0, 0};
    layer.forward({1, 2, 3, 4});
    for (double each : values(layer.backward({1, 1, 1, 1}), "dx")) EXPECT_TRUE(std::isfinite(each));
    EXPECT_EQ(layer.call.state, initialState(layer.problem, layer.call.extents));
  }
}

TEST(ReferenceMask, NoRowsAtAllIsNoStep) {
  for (const Spec& spec : normsWithState()) {
    SCOPED_TRACE(spec.name);
    Layer layer(spec, {1, 0, 2});
    EXPECT_TRUE(values(layer.forward({}), "y").empty());
    expectNear(values(layer.backward({}), "dscale"), {0, 0}, 0);
    EXPECT_EQ(layer.call.state, initialState(layer.problem, layer.call.extents));
  }
}

TEST(ReferenceMask, EmptySegmentHasMeanAndMomentZero) {
  Spec spec = layerNorm();
  spec.reduce = Reduce::Segment;
  spec.epsilon = 0.25;
  Layer layer(spec, {2, 2, 1}, true);
  layer.call.mask = {1, 1, 0, 0};
  const ReferenceResult forward = layer.forward({1, 3, 5, 9});
  expectNear(values(forward, "saved.mean"), {2, 0});
  expectNear(values(forward, "saved.rstd"), {1 / std::sqrt(1.25), 2});
  expectNear(values(forward, "saved.count"), {2, 0});
  EXPECT_EQ(values(forward, "y")[2], 0);
}

TEST(ReferenceMask, OneRowIsABatch) {
  Layer batch(batchNorm(), {1, 1, 2});
  batch.call.bias = {3, 4};
  expectNear(values(batch.forward({5, 6}), "y"), {3, 4}, 0);
  expectNear(values(batch.backward({1, 2}), "dx"), {0, 0}, 0);
  // PN-V: xhat = x (x^2 + eps)^-1/2, dx = s g eps / (q + eps).
  Spec spec = powerNormV();
  spec.epsilon = 3;
  Layer power(spec, {1, 1, 1});
  expectNear(values(power.forward({1}), "y"), {0.5});
  expectNear(values(power.backward({1}), "dx"), {0.5 * 3 / 4});
}

TEST(ReferenceMask, OneFeatureGivesTheBias) {
  Layer layer(layerNorm(), {1, 2, 1});
  layer.call.bias = {7};
  expectNear(values(layer.forward({5, -3}), "y"), {7, 7}, 0);
  expectNear(values(layer.backward({1, 2}), "dx"), {0, 0}, 0);
}

TEST(ReferenceMask, NanAndInfinityStayInTheirStatistic) {
  Layer rows(layerNorm(), {1, 3, 2}), single(layerNorm(), {1, 1, 2});
  const Vector alone = values(single.forward({1, 2}), "y");
  expectNear(values(rows.forward({1, 2, kNan, 4, kInfinity, 6}), "y"),
             {alone[0], alone[1], kNan, kNan, kNan, kNan}, 0);

  // Without centring an infinity divides all the others away: s = 0.
  Layer columns(powerNormV(), {1, 2, 2}), finite(powerNormV(), {1, 2, 1});
  const Vector y = values(columns.forward({kInfinity, 1, 5, 2}), "y"),
               other = values(finite.forward({1, 2}), "y");
  expectNear(y, {kNan, other[0], 0, other[1]}, 0);
}

}  // namespace
}  // namespace normc
