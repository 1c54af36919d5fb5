// If backward is exact, it is the derivative of forward, and infer_backward is always that of infer: compared
// with central differences, for the known normalizations and for random combinations of flags.
#include "dsl/Check.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

constexpr Extents kSmall{2, 3, 4};

// A layer in the middle of its life, with awkward parameters and state.
Layer midway(const Spec& spec, Extents extents, bool mask, uint64_t seed, bool infers = false) {
  Layer layer(spec, extents, mask);
  layer.problem.bindings["heads"] = 2;
  layer.call.state = initialState(layer.problem, extents);
  if (spec.scale) layer.call.scale = random(extents.features, seed + 1, 1);
  if (spec.bias) layer.call.bias = random(extents.features, seed + 2);
  if (mask) layer.call.mask = hardMask(HardMask::Scattered, extents, seed);
  fillAround(layer, seed + 5);
  for (auto& [name, values] : layer.call.state) {
    if (name == "step") {
      values = {7};
    } else if (name == "running_mean" || name == "nu" || name == "window_nu") {
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.3 + 0.1 * static_cast<double>(i % 3);
    } else {
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5 + 0.25 * static_cast<double>(i % 4);
    }
  }
  // r and shift are constants of the backward, so they must not move with x here: held at their limits. Infer
  // has none.
  if (spec.renorm.kind == Renorm::Std && !infers) {
    layer.call.numbers = {{"renorm_rmax", 1.25}, {"renorm_dmax", 0.125}, {"renorm_start", 0}};
    layer.call.state["running_std"] = Vector(extents.features, 0.01);
    layer.call.state["running_mean"] = Vector(extents.features, -100);
  }
  return layer;
}

// The sum of dy * y, and of dresidual_out * residual_out, of a forward, or of an infer, that starts from the
// layer's state.
double loss(Layer layer, const Vector& x, const Vector& dy, bool infers) {
  const ReferenceResult result = infers ? layer.infer(x) : layer.forward(x);
  double sum = 0;
  for (size_t i = 0; i < dy.size(); ++i) sum += dy[i] * values(result, "y")[i];
  const Vector& dstream = layer.call.dresidualOut;
  for (size_t i = 0; i < dstream.size(); ++i) sum += dstream[i] * values(result, "residual_out")[i];
  return sum;
}

// d loss / d variable[i] by five-point differences.
template <typename Evaluate>
Vector differences(Vector variable, Evaluate&& evaluate) {
  constexpr double step = 3e-5;
  Vector out;
  for (double& each : variable) {
    const double before = each;
    const auto at = [&](double distance) {
      each = before + distance * step;
      return evaluate(variable);
    };
    out.push_back((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step));
    each = before;
  }
  return out;
}

void expectDerivative(const Layer& fresh, const Vector& x, const Vector& dy, const ReferenceResult& backward,
                      bool infers) {
  expectNear(values(backward, "dx"),
             differences(x, [&](const Vector& moved) { return loss(fresh, moved, dy, infers); }), 1e-7);
  const auto ofInput = [&](const Vector& gradient, Vector ReferenceCall::* parameter) {
    expectNear(gradient,
               differences(fresh.call.*parameter,
                           [&](const Vector& moved) {
                             Layer other = fresh;
                             other.call.*parameter = moved;
                             return loss(other, x, dy, infers);
                           }),
               1e-7);
  };
  ofInput(values(backward, "dscale"), &ReferenceCall::scale);
  ofInput(values(backward, "dbias"), &ReferenceCall::bias);
  const Has has = hasOf(fresh.problem);
  if (has.gate) ofInput(values(backward, "dgate"), &ReferenceCall::gate);
  if (has.modScale) ofInput(values(backward, "dmod_scale"), &ReferenceCall::modScale);
  if (has.modShift) ofInput(values(backward, "dmod_shift"), &ReferenceCall::modShift);
  if (!has.residual) return;
  if (has.ownResidualGradient) {
    ofInput(values(backward, "dresidual"), &ReferenceCall::residual);
  } else if (has.residualBefore) {
    ofInput(values(backward, "dx"), &ReferenceCall::residual);
  } else {
    Vector gradient = dy;  // but for rows that do not exist
    for (size_t i = 0; i < dy.size() && fresh.problem.spec->padding == Padding::Exclude; ++i)
      if (!fresh.call.mask.empty() && !fresh.call.mask[i / fresh.call.extents.features]) gradient[i] = 0;
    ofInput(gradient, &ReferenceCall::residual);
  }
}

void expectGradientsOfInfer(const Spec& spec, bool mask, uint64_t seed) {
  const std::string norm = spec.name + (mask ? " with a mask" : "") + ", seed " + std::to_string(seed);
  SCOPED_TRACE("infer of " + norm);
  const Layer fresh = midway(spec, kSmall, mask, seed, /*infers=*/true);
  const Vector x = random(kSmall.totalRows() * kSmall.features, seed + 3, 0.5);
  const Vector dy = random(kSmall.totalRows() * kSmall.features, seed + 4);
  Layer layer = fresh;
  if (spec.hasStream()) layer.infer(x);
  const ReferenceResult backward = layer.inferBackward(x, dy);
  EXPECT_EQ(layer.call.state, fresh.call.state);
  expectDerivative(fresh, x, dy, backward, /*infers=*/true);
}

void expectGradients(const Spec& spec, bool mask, uint64_t seed, Extents extents = kSmall) {
  const std::string norm = spec.name + (mask ? " with a mask" : "") + ", seed " + std::to_string(seed);
  SCOPED_TRACE(norm);
  const Layer fresh = midway(spec, extents, mask, seed);
  const Vector x = random(extents.totalRows() * extents.features, seed + 3, 0.5);
  const Vector dy = random(extents.totalRows() * extents.features, seed + 4);
  Layer layer = fresh;
  layer.forward(x);
  expectDerivative(fresh, x, dy, layer.backward(dy), /*infers=*/false);
}

void expectGradients(const Spec& spec, uint64_t seed) { expectGradients(spec, seed % 2 == 0, seed); }

Spec groupNorm(Reduce reduce) {
  Spec spec = layerNorm();
  spec.name = "group_norm";
  spec.reduce = reduce;
  spec.groups.count = 2;
  return spec;
}

TEST(ReferenceGradient, OfEveryExactVariantIsItsDerivative) {
  Spec instanceNorm = layerNorm();
  instanceNorm.name = "instance_norm";
  instanceNorm.reduce = Reduce::Segment;
  Spec groupScaling = rmsNorm();
  groupScaling.name = "group_scaling";
  groupScaling.groups.count = 2;
  groupScaling.scale = false;
  Spec unbiased = batchNorm();
  unbiased.running->unbiased = true;
  for (const Spec& spec :
       {batchNorm(), unbiased, powerNormV(), batchRenorm(), layerNorm(), rmsNorm(), instanceNorm,
        groupScaling, groupNorm(Reduce::Features), groupNorm(Reduce::SegmentFeatures)}) {
    expectGradients(spec, false, 11);
    expectGradients(spec, true, 12);
  }
}

TEST(ReferenceGradient, OfPaddingThatIsOnlyLeftOutOfTheStatistics) {
  for (Spec spec : {batchNorm(), powerNormV(), batchRenorm()}) {
    spec.padding = Padding::LeaveOutOfStatistics;
    expectGradients(spec, true, 13);
  }
}

TEST(ReferenceGradient, OfEveryEpsilonMode) {
  for (EpsilonMode mode : {EpsilonMode::Add, EpsilonMode::Max, EpsilonMode::Outside}) {
    for (double epsilon : {0.3, 1e-3, 1e3}) {  // 1e3: `max` is epsilon everywhere
      for (Spec spec : {layerNorm(), powerNormV(), batchNorm()}) {
        spec.epsilonMode = mode;
        spec.epsilon = epsilon;
        expectGradients(spec, false, 14);
      }
    }
  }
}

TEST(ReferenceGradient, OfCenterAndMomentInAnyMix) {
  for (Center center : {Center::None, Center::Current, Center::Running}) {
    for (Moment moment : {Moment::Raw, Moment::Central}) {
      for (DivideBy divideBy : {DivideBy::Current, DivideBy::Running}) {
        Spec spec = batchNorm();
        spec.center = center;
        spec.moment = moment;
        spec.divideBy = divideBy;
        spec.pre = Spec::Pre{.groups = {.count = 2, .binding = {}}, .epsilon = 1e-3};
        expectGradients(spec, true, 15);
        spec.padding = Padding::LeaveOutOfStatistics;
        expectGradients(spec, true, 16);
      }
    }
  }
}

TEST(ReferenceGradient, OfAnOffset) {
  for (Spec spec : {batchNorm(), powerNormV(), batchRenorm(), layerNorm(), groupNorm(Reduce::Features)}) {
    spec.scaleOffset = -0.5;
    expectGradients(spec, true, 17);
  }
}

TEST(ReferenceGradient, OfEveryActivation) {
  Spec instanceNorm = layerNorm();
  instanceNorm.name = "instance_norm";
  instanceNorm.reduce = Reduce::Segment;
  Spec pre = powerNormV();
  pre.pre = Spec::Pre{.groups = {.count = 2, .binding = {}}, .epsilon = 1e-3};
  Spec runningCenter = batchNorm();
  runningCenter.center = Center::Running;
  for (Activation activation : {Activation::Relu, Activation::Silu, Activation::Gelu, Activation::GeluTanh,
                                Activation::Sigmoid, Activation::Tanh}) {
    SCOPED_TRACE(static_cast<int>(activation));
    for (Spec spec : {batchNorm(), powerNormV(), batchRenorm(), layerNorm(), rmsNorm(), instanceNorm, pre,
                      runningCenter, groupNorm(Reduce::Features), groupNorm(Reduce::SegmentFeatures)}) {
      spec.activation = activation;
      expectGradients(spec, false, 18);
      spec.scaleOffset = 0.25;
      expectGradients(spec, true, 19);
    }
  }
}

TEST(ReferenceGradient, OfAnActivationAndPaddingThatIsOnlyLeftOutOfTheStatistics) {
  for (Spec spec : {batchNorm(), powerNormV(), batchRenorm()}) {
    spec.padding = Padding::LeaveOutOfStatistics;
    spec.activation = Activation::Silu;
    expectGradients(spec, true, 20);
  }
}

// Every norm of this file with a clause in each of its forms.
template <typename Visit>
void forEachNorm(Visit&& visit) {
  Spec instanceNorm = layerNorm();
  instanceNorm.name = "instance_norm";
  instanceNorm.reduce = Reduce::Segment;
  Spec pre = powerNormV();
  pre.pre = Spec::Pre{.groups = {.count = 2, .binding = {}}, .epsilon = 1e-3};
  Spec outside = batchNorm();
  outside.padding = Padding::LeaveOutOfStatistics;
  for (const Spec& spec : {batchNorm(), powerNormV(), batchRenorm(), layerNorm(), rmsNorm(), instanceNorm,
                           pre, outside, groupNorm(Reduce::Features), groupNorm(Reduce::SegmentFeatures)})
    visit(spec);
}

TEST(ReferenceGradient, OfEveryResidual) {
  uint64_t seed = 100;
  for (const Spec::Residual residual : {Spec::Residual{.side = Side::Before, .stream = true},
                                        Spec::Residual{.side = Side::Before, .stream = false},
                                        Spec::Residual{.side = Side::After, .stream = true}}) {
    forEachNorm([&](Spec spec) {
      spec.residual = residual;
      expectGradients(spec, ++seed);
      spec.activation = Activation::Tanh;
      expectGradients(spec, true, ++seed);
    });
  }
}

TEST(ReferenceGradient, OfEveryGate) {
  uint64_t seed = 200;
  for (Activation function :
       {Activation::None, Activation::Silu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu})
    for (Side side : {Side::After, Side::Before})
      for (Per per : {Per::Row, Per::Segment, Per::Feature})
        for (Spec spec : {batchNorm(), layerNorm(), groupNorm(Reduce::SegmentFeatures)}) {
          spec.gate = Spec::Gate{function, side, per};
          expectGradients(spec, ++seed);
        }
  forEachNorm([&](Spec spec) {
    for (Side side : {Side::After, Side::Before}) {
      spec.gate = Spec::Gate{Activation::Silu, side, Per::Row};
      spec.activation = side == Side::Before ? Activation::Gelu : Activation::None;
      expectGradients(spec, true, ++seed);
    }
  });
}

TEST(ReferenceGradient, OfEveryModulation) {
  uint64_t seed = 400;
  for (const auto& [scale, shift] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)})
    for (Per per : {Per::Segment, Per::Row})
      for (double offset : {1.0, -0.25}) {
        if (!scale && offset != 1) continue;
        forEachNorm([&](Spec spec) {
          spec.modulate = Spec::Modulate{scale, shift, per, offset};
          expectGradients(spec, ++seed);
        });
      }
}

// Also where the features of a pair have statistics of their own.
TEST(ReferenceGradient, OfEveryRope) {
  uint64_t seed = 500;
  for (const Pairs pairs : {Pairs::Half, Pairs::Interleaved})
    for (const int64_t runs : {1, 2})
      forEachNorm([&](Spec spec) {
        if (std::max(spec.groups.count, spec.pre ? spec.pre->groups.count : 1) > runs) return;
        spec.rope = Spec::Rope{.pairs = pairs, .groups = {runs, ""}};
        if (runs == 1 && pairs == Pairs::Half) spec.rope->features = 2;
        expectGradients(spec, ++seed);
        spec.gate = Spec::Gate{Activation::Silu, Side::After, Per::Row};
        spec.modulate = Spec::Modulate{.scale = true, .shift = true};
        spec.activation = Activation::Tanh;
        expectGradients(spec, ++seed);
        if (spec.running) expectGradientsOfInfer(spec, seed % 2 == 0, seed);
      });
}

TEST(ReferenceGradient, OfRandomExactMixesWithRope) {
  int mixes = 0;
  for (uint64_t seed = 0; mixes < 40; ++seed) {
    const Spec spec = randomRopeSpec(seed);
    if (spec.backward != Backward::Exact) continue;
    expectGradients(spec, seed % 2 == 0, seed, {2, 2, 16});
    ++mixes;
  }
}

TEST(ReferenceGradient, OfASumOfSquares) {
  uint64_t seed = 600;
  for (Reduce reduce : {Reduce::Features, Reduce::Segment, Reduce::SegmentFeatures})
    for (EpsilonMode mode : {EpsilonMode::Add, EpsilonMode::Max, EpsilonMode::Outside})
      for (double epsilon : {0.3, 1e-3, 1e3}) {
        Spec spec = rmsNorm();
        spec.reduce = reduce;
        if (reduce != Reduce::Segment) spec.groups.count = 2;
        spec.moment = Moment::Sum;
        spec.epsilonMode = mode;
        spec.epsilon = epsilon;
        ASSERT_TRUE(checkSpec(spec).empty()) << text(checkSpec(spec));
        expectGradients(spec, ++seed);
      }
}

// All clauses in one norm, also with the functions that their gradients share.
TEST(ReferenceGradient, OfAllThatSurroundsANormAtOnce) {
  uint64_t seed = 700;
  for (Side residual : {Side::Before, Side::After})
    for (Side gate : {Side::After, Side::Before})
      for (Activation activation : {Activation::None, Activation::Silu})
        forEachNorm([&](Spec spec) {
          spec.residual = Spec::Residual{.side = residual, .stream = true};
          spec.gate = Spec::Gate{Activation::Sigmoid, gate, Per::Segment};
          spec.modulate = Spec::Modulate{.scale = true, .shift = true, .per = Per::Row, .offset = 1};
          spec.scaleOffset = 1;
          spec.activation = activation;
          ASSERT_TRUE(checkSpec(spec).empty()) << text(checkSpec(spec));
          expectGradients(spec, ++seed);
          if (spec.running) expectGradientsOfInfer(spec, seed % 2 == 1, seed);
        });
}

TEST(ReferenceGradient, OfRandomExactMixes) {
  int mixes = 0;
  for (uint64_t seed = 0; mixes < 60; ++seed) {
    const Spec spec = randomSpec(seed);
    if (spec.backward != Backward::Exact) continue;
    ASSERT_TRUE(checkSpec(spec).empty()) << text(checkSpec(spec));
    expectGradients(spec, seed % 2 == 0, seed);
    ++mixes;
  }
}

TEST(ReferenceGradient, OfInferIsItsDerivativeForEveryNormWithAState) {
  for (Spec spec : {batchNorm(), powerNormV(), powerNorm(), powerNormReleased(4), batchRenorm(), mabn(2, 1),
                    unifiedNorm(2, 1)}) {
    expectGradientsOfInfer(spec, false, 21);
    expectGradientsOfInfer(spec, true, 22);
    spec.activation = Activation::Gelu;
    spec.scaleOffset = 0.5;
    spec.epsilonMode = EpsilonMode::Outside;
    expectGradientsOfInfer(spec, true, 23);
  }
  int mixes = 0;
  for (uint64_t seed = 0; mixes < 100; ++seed) {
    const Spec spec = randomSpec(seed);
    if (!spec.running) continue;
    expectGradientsOfInfer(spec, seed % 2 == 0, seed);
    ++mixes;
  }
}

// With constant statistics y is linear in u, so dx is the same map applied to dy.
TEST(ReferenceGradient, OfFrozenStatisticsIsTheLinearMapOfForward) {
  int mixes = 0;
  for (uint64_t seed = 0; mixes < 30; ++seed) {
    const Spec spec = randomSpec(seed);
    if (spec.backward != Backward::Frozen || spec.pre || spec.activation != Activation::None) continue;
    if (spec.residual || spec.gate || spec.modulate) continue;
    ++mixes;
    SCOPED_TRACE(seed);
    Layer layer = midway(spec, kSmall, false, seed);
    layer.call.numbers.clear();
    const int64_t count = kSmall.totalRows() * kSmall.features;
    layer.forward(random(count, seed));
    const Vector dy = random(count, seed + 1);
    const ReferenceResult backward = layer.backward(dy);
    const Vector& rstd = layer.call.saved.at("rstd");
    const int64_t groups = layer.problem.groups(spec.groups), width = kSmall.features / groups;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = i / kSmall.features, feature = i % kSmall.features, segment = row / kSmall.rows;
      int64_t statistic = feature;
      if (spec.reduce == Reduce::Features) statistic = row * groups + feature / width;
      if (spec.reduce == Reduce::Segment) statistic = segment * kSmall.features + feature;
      if (spec.reduce == Reduce::SegmentFeatures) statistic = segment * groups + feature / width;
      double factor = rstd[statistic];
      if (spec.scale) factor *= spec.scaleOffset.value_or(0) + layer.call.scale[feature];
      if (spec.renorm.kind != Renorm::None) factor *= layer.call.saved.at("renorm_scale")[statistic];
      EXPECT_NEAR(values(backward, "dx")[i], factor * dy[i], 1e-12 * std::abs(factor * dy[i]));
    }
  }
}

TEST(ReferenceGradient, OfAConstantRowHasNoSecondMomentTerm) {
  for (EpsilonMode mode : {EpsilonMode::Add, EpsilonMode::Max, EpsilonMode::Outside}) {
    Spec spec = layerNorm();
    spec.epsilonMode = mode;
    spec.epsilon = 0.25;
    Layer layer(spec, {1, 1, 2});
    expectNear(values(layer.forward({3, 3}), "y"), {0, 0});
    // s (h - mean h), s = 1 / sqrt(1/4) = 2, or 1 / (0 + 1/4) = 4.
    const double s = mode == EpsilonMode::Outside ? 4 : 2;
    expectNear(values(layer.backward({1, 5}), "dx"), {-2 * s, 2 * s});
  }
}

}  // namespace
}  // namespace normc
