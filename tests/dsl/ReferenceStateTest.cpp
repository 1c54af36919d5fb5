// The state after a step: running values, windows, warmup, and calls that are not steps.
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr Extents kColumn{1, 2, 1};

// A column of two equal values has this raw second moment.
Vector moment(double q) { return {std::sqrt(q), -std::sqrt(q)}; }

Spec warming(Accumulate accumulate, double steps) {
  Spec spec = powerNorm();
  spec.epsilon = 0;
  spec.running->decay = 0.5;
  spec.warmup = Spec::Warmup{.steps = steps, .accumulate = accumulate};
  return spec;
}

Vector psi2Of(const Spec& spec, const Vector& moments) {
  Layer layer(spec, kColumn);
  Vector out;
  for (double q : moments) {
    layer.forward(moment(q));
    out.push_back(layer.state("psi2"));
  }
  return out;
}

TEST(ReferenceState, DecaysFromTheFirstStep) {
  // 1 -> (1 + 3) / 2 = 2 -> (2 + 6) / 2 = 4 -> (4 + 0) / 2.
  expectNear(psi2Of(warming(Accumulate::Decay, 3), {3, 6, 0}), {2, 4, 2});
}

TEST(ReferenceState, CumulativeIsTheMeanUntilWarmupThenDecays) {
  // t = 1, 2 < 3: 3, (3 + 6) / 2; then (4.5 + 1) / 2.
  expectNear(psi2Of(warming(Accumulate::Cumulative, 3), {3, 6, 1}), {3, 4.5, 2.75});
}

TEST(ReferenceState, ALateStepOfACumulativeMeanKeepsItsPrecision) {
  Layer layer(warming(Accumulate::Cumulative, 4000), kColumn);
  layer.call.state["step"] = {3997}, layer.call.state["psi2"] = {0};
  layer.forward(moment(1));
  EXPECT_DOUBLE_EQ(layer.state("psi2"), 1.0 / 3998);
}

TEST(ReferenceState, CumulativeThenDecayDoesBothWhileItWarms) {
  // t = 1: mean 4, then (4 + 4) / 2. t = 2: mean (4 + 6) / 2 = 5, then (5 + 6) / 2. t = 3: (5.5 + 1) / 2.
  expectNear(psi2Of(warming(Accumulate::CumulativeThenDecay, 3), {4, 6, 1}), {4, 5.5, 3.25});
}

TEST(ReferenceState, BatchDividesThroughTheLastWarmStep) {
  Layer layer(warming(Accumulate::Decay, 2), kColumn);
  expectNear(values(layer.forward(moment(4)), "y"), {1, -1});   // t = 1: by q = 4; psi2 = 2.5
  expectNear(values(layer.forward(moment(16)), "y"), {1, -1});  // t = 2: by q = 16; psi2 = 9.25
  const double root = 3 / std::sqrt(9.25);
  expectNear(values(layer.forward(moment(9)), "y"), {root, -root});  // t = 3: by psi2
}

TEST(ReferenceState, RunningMeanAccumulatesLikeTheMoment) {
  Spec spec = warming(Accumulate::Cumulative, 3);
  spec.center = Center::Running;
  Layer layer(spec, kColumn);
  layer.forward({1, 3});
  EXPECT_EQ(layer.state("running_mean"), 2);
  // The mean of the first step is subtracted in the second: (5 - 2) / sqrt(q), q = (25 + 49) / 2 about 0.
  expectNear(values(layer.forward({5, 7}), "y"), {3 / std::sqrt(37), 5 / std::sqrt(37)});
  EXPECT_EQ(layer.state("running_mean"), 4);
}

TEST(ReferenceState, UnbiasedVarianceIsForTheRunningValueOnly) {
  Spec spec = batchNorm();
  spec.epsilon = 0;
  spec.running->decay = 0;
  spec.running->unbiased = true;
  Layer layer(spec, {1, 3, 1});
  // -1, 0, 1: variance 2/3 divides, 2/2 is kept.
  expectNear(values(layer.forward({-1, 0, 1}), "y"), {-std::sqrt(1.5), 0, std::sqrt(1.5)});
  EXPECT_DOUBLE_EQ(layer.state("running_var"), 1);
  // One row: the factor is 1 / max(0, 1).
  spec.running->decay = 0.9;
  Layer single(spec, {1, 1, 1});
  single.forward({5});
  EXPECT_DOUBLE_EQ(single.state("running_var"), 0.9);
}

TEST(ReferenceState, WindowTakesOverWhenItIsFullAndForgetsTheOldest) {
  Spec spec = mabn(2, 1000);
  spec.epsilon = 0;
  Layer layer(spec, kColumn);
  expectNear(values(layer.forward(moment(4)), "saved.rstd"), {0.5});  // t = 1 and 2: alone
  expectNear(values(layer.forward(moment(16)), "saved.rstd"), {0.25});
  expectNear(values(layer.forward(moment(2)), "saved.rstd"), {1.0 / 3});  // (16 + 2) / 2 = 9
  expectNear(layer.call.state.at("window_psi2"), {2, 16});                // step 3 is in slot 0
  expectNear(values(layer.forward(moment(6)), "saved.rstd"), {0.5});      // (2 + 6) / 2 = 4
}

TEST(ReferenceState, GeometricWindow) {
  Spec spec = unifiedNorm(2, 1000);
  spec.epsilon = 0;
  Layer layer(spec, kColumn);
  layer.forward(moment(1));
  layer.forward(moment(2));
  expectNear(values(layer.forward(moment(8)), "saved.rstd"), {0.5});  // sqrt(2 * 8) = 4
  layer.forward(moment(0));
  EXPECT_TRUE(std::isinf(layer.call.saved.at("rstd")[0]));  // a zero in the window, epsilon 0
}

TEST(ReferenceState, WindowStandsAloneWhileItIsWarm) {
  Spec spec = mabn(2, 1000);
  spec.epsilon = 0;
  spec.warmup = Spec::Warmup{.steps = 4, .accumulate = Accumulate::Decay};
  Layer layer(spec, kColumn);
  layer.forward(moment(4));
  layer.forward(moment(4));
  expectNear(values(layer.forward(moment(16)), "saved.rstd"), {0.25});  // full, but 3 < 4
  expectNear(values(layer.forward(moment(2)), "saved.rstd"), {1.0 / 3});
}

TEST(ReferenceState, RenormWaitsForStartAndForWarmup) {
  Spec spec = mabn(1, 2);
  spec.epsilon = 0;
  Layer layer(spec, kColumn);
  Vector r;
  for (int step = 0; step < 3; ++step) {
    layer.call.state["psi2"] = {1};
    r.push_back(values(layer.forward(moment(9)), "saved.renorm_scale")[0]);
  }
  expectNear(r, {1, 1, 3});
  spec.warmup = Spec::Warmup{.steps = 3, .accumulate = Accumulate::Decay};
  Layer warm(spec, kColumn);
  for (int step = 0; step < 3; ++step) warm.forward(moment(9));
  expectNear(warm.call.saved.at("renorm_scale"), {1});
  warm.call.state["psi2"] = {0.09};
  expectNear(values(warm.forward(moment(9)), "saved.renorm_scale"), {5});  // 10, clipped at rmax
}

TEST(ReferenceState, GammaIsClampedWhereTheSpecSaysSo) {
  Spec spec = powerNorm();
  spec.epsilon = 0;
  const auto nuAfter = [](const Spec& spec) {
    Layer layer(spec, kColumn);
    layer.call.state["nu"] = {1};
    layer.forward(moment(100));
    layer.backward({0, 0});
    return layer.state("nu");
  };
  EXPECT_DOUBLE_EQ(nuAfter(spec), 1 - 0.1 * 100);
  spec.approximate.clampGamma = 20;
  EXPECT_DOUBLE_EQ(nuAfter(spec), 1 - 0.1 * 20);
}

TEST(ReferenceState, AverageIncludesThisBatchAndMovesFirst) {
  Spec spec = powerNormV();
  spec.epsilon = 0;
  spec.backward = Backward::Approximate;
  spec.approximate.nu = Nu::Average;
  spec.approximate.decay = 0.75;
  Layer layer(spec, kColumn);
  layer.call.state["nu"] = {4};
  layer.forward({1, 1});
  // x0 = 1, 1; mean(h x0) = (2 + 10) / 2 = 6; nu = 3/4 * 4 + 1/4 * 6 = 4.5; dx = h - nu.
  expectNear(values(layer.backward({2, 10}), "dx"), {-2.5, 5.5});
  EXPECT_DOUBLE_EQ(layer.state("nu"), 4.5);
}

TEST(ReferenceState, InferenceUsesAndKeepsIt) {
  Spec spec = batchNorm();
  spec.epsilon = 0;
  Layer layer(spec, kColumn);
  layer.call.state = {{"step", {5}}, {"running_mean", {2}}, {"running_var", {4}}};
  const auto before = layer.call.state;
  expectNear(values(layer.infer({2, 6}), "y"), {0, 2});
  EXPECT_EQ(layer.call.state, before);
  // Without state a layer has but its input.
  spec.running.reset();
  Layer stateless(spec, kColumn);
  expectNear(values(stateless.infer({2, 6}), "y"), {-1, 1});
}

TEST(ReferenceState, InferenceIsForwardWithThatStatisticFrozen) {
  // A forward that divides by running values uses the ones before it, as inference does.
  Spec spec = powerNorm();
  spec.center = Center::Running;
  Layer layer(spec, {1, 4, 3});
  layer.forward(random(12, 1, 1));
  const Vector x = random(12, 2, 1), inferred = values(layer.infer(x), "y");
  expectNear(values(layer.forward(x), "y"), inferred, 0);
}

TEST(ReferenceState, BackwardMovesNuAlone) {
  Layer layer(powerNorm(), {1, 4, 3});
  layer.forward(random(12, 1, 1));
  auto before = layer.call.state;
  layer.backward(random(12, 2));
  EXPECT_NE(layer.call.state["nu"], before["nu"]);
  before["nu"] = layer.call.state["nu"];
  EXPECT_EQ(layer.call.state, before);
}

TEST(ReferenceState, BackwardUsesTheScaleOfItsForward) {
  Layer layer(powerNorm(), {1, 4, 3});
  layer.forward(random(12, 1, 1));
  const Vector dy = random(12, 2);
  Layer later = layer;
  later.call.state["psi2"] = {100, 100, 100};
  expectNear(values(later.backward(dy), "dx"), values(layer.backward(dy), "dx"), 0);
}

TEST(ReferenceState, NumbersOfACallOverrideTheSpec) {
  Layer layer(powerNorm(), kColumn);
  layer.call.numbers["decay"] = 0.25;
  layer.forward(moment(9));
  EXPECT_DOUBLE_EQ(layer.state("psi2"), 0.25 + 0.75 * 9);
}

TEST(ReferenceState, AndSavedHaveTheShapesOfFieldsForEveryLegalMix) {
  constexpr Extents extents{2, 5, 4};
  constexpr int64_t count = 40;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Spec spec = randomSpec(seed);
    SCOPED_TRACE(seed);
    Layer layer(spec, extents, seed % 3 == 0);
    layer.problem.bindings["heads"] = 2;
    layer.call.state = initialState(layer.problem, extents);
    if (layer.problem.mask) layer.call.mask = hardMask(HardMask::Tails, extents, seed);
    fillAround(layer, seed + 100);
    for (int step = 1; step <= 6; ++step) {
      ReferenceResult result = layer.forward(random(count, seed + step, 0.5));
      size_t known = 1 + spec.hasStream();  // y, residual_out
      for (const Field& field : savedFields(layer.problem)) {
        EXPECT_EQ(values(result, "saved." + field.name).size(), static_cast<size_t>(field.elements(extents)));
        ++known;
      }
      known += stateFields(layer.problem).size();
      EXPECT_EQ(result.outputs.size(), known);
      result.outputs.merge(layer.backward(random(count, seed - step)).outputs);
      for (const TensorInfo& each : kTensorTable) {
        const bool parameter = each.tensor == kDscale || each.tensor == kDbias;  // there, but empty
        const bool written =
            isTaken(each, Entry::Backward, hasOf(layer.problem)) && each.written(Entry::Backward);
        if (!each.written(Entry::Backward) || each.tensor == kY || (parameter && !written)) continue;
        ASSERT_EQ(result.outputs.contains(std::string(each.name)), written) << each.name;
        if (written)
          EXPECT_EQ(values(result, std::string(each.name)).size(),
                    static_cast<size_t>(layer.elements(each.tensor)));
      }
      result.outputs["infer"] = layer.infer(random(count, seed)).outputs.at("y");
      for (const Field& field : stateFields(layer.problem)) {
        EXPECT_EQ(layer.call.state.at(field.name).size(), static_cast<size_t>(field.elements(extents)));
      }
      for (const auto& [name, quantity] : result.outputs) {
        for (size_t i = 0; i < quantity.value.size(); ++i) {
          ASSERT_TRUE(std::isfinite(quantity.value[i])) << name << " in step " << step;
          ASSERT_TRUE(std::isfinite(quantity.magnitude[i])) << name << " in step " << step;
        }
      }
      if (spec.running) {
        EXPECT_EQ(layer.state("step"), step);
      }
    }
  }
}

}  // namespace
}  // namespace normc
