// Legal specs at random, all flag mixes: for round trips here, and for "the
// kernel equals the reference" elsewhere.
//
// The same seed gives the same spec on every machine. Every spec obeys
// dsl/SPEC.md; a test asks checkSpec about a few thousand of them.
#pragma once

#include <cstdint>
#include <random>

#include "dsl/Spec.h"

namespace normc {

class RandomSpec {
 public:
  explicit RandomSpec(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 1) {}

  Spec make() {
    spec_.name = "random";
    spec_.reduce = chance(2) ? Reduce::Rows : pick<Reduce>(4);
    if (spec_.perFeature() && !chance(5)) {
      withState();
    } else {
      spec_.center = pick<Center>(2);  // none, current
      spec_.moment = pick<Moment>(2);
      spec_.backward = chance(4) ? Backward::Frozen : Backward::Exact;
    }
    if (spec_.perGroup()) spec_.groups = groups();
    if (spec_.perFeature() && chance(4)) spec_.pre = {groups(), number({1e-5, 1e-3})};
    spec_.scale = !chance(4);
    spec_.bias = chance(2);
    spec_.epsilonMode = chance(2) ? EpsilonMode::Add : pick<EpsilonMode>(3);
    const bool batchScale = spec_.approximate.scale == BackwardScale::Batch;
    const bool mayBeZero = spec_.divideBy == DivideBy::Running && !spec_.warmup && !batchScale;
    spec_.epsilon = mayBeZero && chance(4) ? 0 : number({1e-5, 1e-6, 1e-3});
    if (spec_.scale && chance(3)) spec_.scaleOffset = number({1, -0.5});
    if (chance(2)) spec_.activation = pick<Activation>(7);
    around();
    return spec_;
  }

  Spec makeQuantized() {
    make();
    Spec::Quantize& quantize = spec_.quantize.emplace();
    quantize.codes = pick<Codes>(2);
    quantize.per = pick<QuantizePer>(3);
    if (quantize.per == QuantizePer::Block) quantize.size = static_cast<int64_t>(number({1, 2, 4}));
    if (quantize.per == QuantizePer::Tensor) return spec_;
    quantize.powerOfTwo = chance(3);
    quantize.floor = number({1e-10, 1e-4});
    return spec_;
  }

  Spec makeWithRope() {
    make();
    // The two features of a pair have one statistic, also where `heads` is of any number.
    const bool grouped = spec_.perGroup();
    const Groups shared = spec_.pre ? spec_.pre->groups : grouped ? spec_.groups : Groups{};
    Spec::Rope& rope = spec_.rope.emplace();
    rope.pairs = pick<Pairs>(2);
    rope.groups = shared.isOne() ? groups() : shared;
    if (rope.groups.binding.empty() && rope.groups.count < 4 && chance(3)) rope.groups.count *= 2;
    if (chance(3)) rope.features = static_cast<int64_t>(number({2, 2, 4}));
    return spec_;
  }

 private:
  // Half of the specs stay bare.
  void around() {
    const bool sums = !spec_.perFeature() && spec_.center == Center::None && spec_.moment == Moment::Raw;
    if (sums && chance(3)) spec_.moment = Moment::Sum;
    if (chance(2)) return;
    if (chance(2)) {
      const Side side = chance(2) ? Side::After : Side::Before;
      spec_.residual = Spec::Residual{side, side == Side::After || !chance(3)};
    }
    if (chance(2)) {
      constexpr Activation kFunctions[] = {Activation::None, Activation::Silu, Activation::Sigmoid,
                                           Activation::Tanh, Activation::Gelu};
      spec_.gate =
          Spec::Gate{kFunctions[random_() % 5], chance(2) ? Side::Before : Side::After, pick<Per>(3)};
    }
    if (chance(2)) {
      const uint64_t parts = random_() % 3;
      spec_.modulate = Spec::Modulate{parts != 1, parts != 0, pick<Per>(2)};
      if (spec_.modulate->scale) spec_.modulate->offset = number({1, 1, 0, -0.5});
    }
  }

  void withState() {
    spec_.running = Spec::Running{number({0.9, 0.99, 0.5}), number({1, 1, 0.25}), false};
    spec_.center = pick<Center>(3);
    spec_.moment = pick<Moment>(2);
    spec_.divideBy = pick<DivideBy>(3);
    spec_.padding = pick<Padding>(2);
    if (spec_.divideBy == DivideBy::Window) {
      spec_.window = {static_cast<int64_t>(number({1, 2, 4, 16})), pick<WindowMean>(2)};
    }
    spec_.backward = pick<Backward>(3);
    if (spec_.backward == Backward::Exact && spec_.divideBy == DivideBy::Window) {
      spec_.backward = Backward::Approximate;
    }
    if (spec_.backward == Backward::Approximate) approximate();
    if (spec_.divideBy == DivideBy::Window && spec_.moment == Moment::Raw && chance(2)) {
      spec_.renorm = {Renorm::Moment, number({5, 2}), 0, number({0, 3, 1000}), chance(2)};
    }
    const bool likeBatchNorm = spec_.divideBy == DivideBy::Current && spec_.center == Center::Current &&
                               spec_.moment == Moment::Central;
    if (likeBatchNorm && chance(2)) {
      spec_.renorm = {Renorm::Std, number({3, 1, 1.5}), number({5, 0, 0.5}), number({0, 2}), true};
    }
    spec_.running->unbiased = spec_.moment == Moment::Central && spec_.divideBy != DivideBy::Window &&
                              spec_.renorm.kind == Renorm::None && chance(2);
    if (spec_.divideBy != DivideBy::Current && spec_.backward != Backward::Exact && chance(2)) {
      const bool window = spec_.divideBy == DivideBy::Window;
      spec_.warmup = {number({0, 1, 3, 4000}), window ? Accumulate::Decay : pick<Accumulate>(3)};
    }
  }

  void approximate() {
    Spec::Approximate& nu = spec_.approximate;
    nu.nu = pick<Nu>(spec_.divideBy == DivideBy::Window ? 3 : 2);
    if (nu.nu != Nu::Window) nu.decay = number({0.9, 0.99, 0});
    if (nu.nu == Nu::Feedback && chance(3)) nu.clampGamma = number({4, 0.75});
    if (spec_.divideBy == DivideBy::Running && chance(2)) nu.scale = BackwardScale::Batch;
  }

  Groups groups() {
    if (chance(3)) return {1, "heads"};
    return {static_cast<int64_t>(number({1, 2, 4})), ""};
  }

  // True once in `n` times.
  bool chance(uint64_t n) { return random_() % n == 0; }
  template <typename Enum>
  Enum pick(uint64_t count) {
    return static_cast<Enum>(random_() % count);
  }
  template <size_t N>
  double number(const double (&values)[N]) {
    return values[random_() % N];
  }

  std::mt19937_64 random_;
  Spec spec_;
};

inline Spec randomSpec(uint64_t seed) { return RandomSpec(seed).make(); }
/// Returns that spec with codes in place of y.
inline Spec randomQuantizedSpec(uint64_t seed) { return RandomSpec(seed).makeQuantized(); }

/// Returns that spec with `rope`, legal for a multiple of 16 features of at most 4 heads.
inline Spec randomRopeSpec(uint64_t seed) { return RandomSpec(seed).makeWithRope(); }

/// A clause that every spec of a draw has.
enum class Drawing { Plain, Quantized, WithRope };
inline Spec randomSpec(uint64_t seed, Drawing drawing) {
  if (drawing == Drawing::Plain) return randomSpec(seed);
  return drawing == Drawing::Quantized ? randomQuantizedSpec(seed) : randomRopeSpec(seed);
}

}  // namespace normc
