// The structural hash: what shares a kernel and what does not.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "dsl/Numbers.h"
#include "dsl/Print.h"
#include "dsl/Spec.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

std::string hashOf(const std::string& name) { return (*findNorm(name))->structuralHash(); }

TEST(StructuralHash, Is16HexDigitsThatNeverChange) {
  // Packages carry these: a change here makes every existing package foreign.
  EXPECT_EQ(hashOf("layer_norm"), "4bff348f1e97420b");
  EXPECT_EQ(hashOf("power_norm_released"), "61ef6980ace534b3");
}

TEST(StructuralHash, NameAndNumbersDoNotEnter) {
  const std::string base =
      "norm NAME from power_norm_released {\n  pre group_scaling(groups = heads, epsilon = E)\n"
      "  running decay = 0.D, init = D\n  warmup steps = D, accumulate = cumulative\n"
      "  backward approximate(decay = 0.D, clamp_gamma = D)\n  epsilon E\n}\n";
  const auto filled = [&](std::string name, std::string decimal, std::string epsilon) {
    std::string out;
    for (size_t i = 0; i < base.size(); ++i) {
      if (base.compare(i, 4, "NAME") == 0) {
        out += name;
        i += 3;
      } else if (base[i] == 'D') {
        out += decimal;
      } else if (base[i] == 'E') {
        out += epsilon;
      } else {
        out += base[i];
      }
    }
    return specOf(out);
  };
  EXPECT_EQ(filled("a", "3", "1e-3").structuralHash(), filled("b", "7", "1e-7").structuralHash());

  const auto renorm = [](const std::string& numbers) {
    return specOf("norm n from batch_renorm {\n  renorm std(" + numbers + ")\n}\n").structuralHash();
  };
  EXPECT_EQ(renorm("rmax = 3, dmax = 5"), renorm("rmax = 2, dmax = 1, start = 10"));
}

TEST(StructuralHash, EveryStructuralFlagEnters) {
  const Spec base = specOf("norm n from power_norm_released {\n}\n");
  const std::map<std::string, std::function<void(Spec&)>> changes = {
      {"reduce", [](Spec& s) { s.reduce = Reduce::Segment; }},
      {"center", [](Spec& s) { s.center = Center::Current; }},
      {"center running", [](Spec& s) { s.center = Center::Running; }},
      {"moment", [](Spec& s) { s.moment = Moment::Central; }},
      {"divide_by", [](Spec& s) { s.divideBy = DivideBy::Current; }},
      {"window", [](Spec& s) { s.divideBy = DivideBy::Window; }},
      {"window size", [](Spec& s) { s.divideBy = DivideBy::Window, s.window.size = 2; }},
      {"window mean", [](Spec& s) { s.divideBy = DivideBy::Window, s.window.mean = WindowMean::Geometric; }},
      {"running", [](Spec& s) { s.running.reset(); }},
      {"unbiased", [](Spec& s) { s.running->unbiased = true; }},
      {"backward exact", [](Spec& s) { s.backward = Backward::Exact; }},
      {"backward frozen", [](Spec& s) { s.backward = Backward::Frozen; }},
      {"nu average", [](Spec& s) { s.approximate.nu = Nu::Average; }},
      {"nu window", [](Spec& s) { s.approximate.nu = Nu::Window; }},
      {"scale forward", [](Spec& s) { s.approximate.scale = BackwardScale::Forward; }},
      {"clamp_gamma", [](Spec& s) { s.approximate.clampGamma = 4; }},
      {"renorm std", [](Spec& s) { s.renorm.kind = Renorm::Std; }},
      {"renorm moment", [](Spec& s) { s.renorm.kind = Renorm::Moment; }},
      {"renorm backward", [](Spec& s) { s.renorm.kind = Renorm::Moment, s.renorm.forward = false; }},
      {"no scale", [](Spec& s) { s.scale = false; }},
      {"no bias", [](Spec& s) { s.bias = false; }},
      {"an offset", [](Spec& s) { s.scaleOffset = 1; }},
      {"relu", [](Spec& s) { s.activation = Activation::Relu; }},
      {"silu", [](Spec& s) { s.activation = Activation::Silu; }},
      {"residual", [](Spec& s) { s.residual = Spec::Residual{.side = Side::Before, .stream = false}; }},
      {"residual after", [](Spec& s) { s.residual = Spec::Residual{.side = Side::After}; }},
      {"stream", [](Spec& s) { s.residual = Spec::Residual{}; }},
      {"gate", [](Spec& s) { s.gate = Spec::Gate{}; }},
      {"gate silu", [](Spec& s) { s.gate = Spec::Gate{.function = Activation::Silu}; }},
      {"gate before", [](Spec& s) { s.gate = Spec::Gate{.side = Side::Before}; }},
      {"gate per segment", [](Spec& s) { s.gate = Spec::Gate{.per = Per::Segment}; }},
      {"gate per feature", [](Spec& s) { s.gate = Spec::Gate{.per = Per::Feature}; }},
      {"modulate scale", [](Spec& s) { s.modulate = Spec::Modulate{.scale = true}; }},
      {"modulate shift", [](Spec& s) { s.modulate = Spec::Modulate{.shift = true}; }},
      {"modulate", [](Spec& s) { s.modulate = Spec::Modulate{.scale = true, .shift = true}; }},
      {"modulate per row", [](Spec& s) { s.modulate = Spec::Modulate{.scale = true, .per = Per::Row}; }},
      {"moment sum", [](Spec& s) { s.moment = Moment::Sum; }},
      {"quantize", [](Spec& s) { s.quantize = Spec::Quantize{}; }},
      {"rope", [](Spec& s) { s.rope = Spec::Rope{}; }},
      {"rope interleaved", [](Spec& s) { s.rope = Spec::Rope{.pairs = Pairs::Interleaved}; }},
      {"rope of 2", [](Spec& s) { s.rope = Spec::Rope{.groups = {2, ""}}; }},
      {"rope of heads", [](Spec& s) { s.rope = Spec::Rope{.groups = {1, "heads"}}; }},
      {"rope of features", [](Spec& s) { s.rope = Spec::Rope{.features = 2}; }},
      {"e4m3", [](Spec& s) { s.quantize = Spec::Quantize{.codes = Codes::E4M3}; }},
      {"quantize per tensor", [](Spec& s) { s.quantize = Spec::Quantize{.per = QuantizePer::Tensor}; }},
      {"quantize per block", [](Spec& s) { s.quantize = Spec::Quantize{.per = QuantizePer::Block}; }},
      {"block", [](Spec& s) { s.quantize = Spec::Quantize{.per = QuantizePer::Block, .size = 64}; }},
      {"power of two", [](Spec& s) { s.quantize = Spec::Quantize{.powerOfTwo = true}; }},
      {"no affine", [](Spec& s) { s.scale = s.bias = false; }},
      {"epsilon max", [](Spec& s) { s.epsilonMode = EpsilonMode::Max; }},
      {"epsilon outside", [](Spec& s) { s.epsilonMode = EpsilonMode::Outside; }},
      {"no pre", [](Spec& s) { s.pre.reset(); }},
      {"pre groups", [](Spec& s) { s.pre->groups = {4, ""}; }},
      {"pre binding", [](Spec& s) { s.pre->groups.binding = "others"; }},
      {"no warmup", [](Spec& s) { s.warmup.reset(); }},
      {"accumulate", [](Spec& s) { s.warmup->accumulate = Accumulate::Decay; }},
      {"padding", [](Spec& s) { s.padding = Padding::Exclude; }},
  };
  std::map<std::string, std::string> owners{{base.structuralHash(), "the base"}};
  for (const auto& [what, change] : changes) {
    Spec changed = base;
    change(changed);
    const auto [owner, isNew] = owners.emplace(changed.structuralHash(), what);
    EXPECT_TRUE(isNew) << what << " has the hash of " << owner->second;
  }
  Spec groups = specOf("norm n from group_norm {\n}\n"), literal = groups;
  literal.groups = {8, ""};
  EXPECT_NE(groups.structuralHash(), literal.structuralHash());
}

TEST(StructuralHash, FieldsOfAFlagThatIsOffDoNotEnter) {
  Spec spec = specOf("norm n from layer_norm {\n}\n");
  const std::string hash = spec.structuralHash();
  spec.window.size = 3;
  spec.approximate.nu = Nu::Window;
  EXPECT_EQ(spec.structuralHash(), hash);
}

TEST(StructuralHash, DifferentTextsWithoutNumbersHaveDifferentHashes) {
  // Over many specs: equal hashes only where the specs differ in numbers alone.
  std::map<std::string, Spec> seen;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Spec spec = seed % 3 == 0   ? randomSpec(seed)
                : seed % 3 == 1 ? randomQuantizedSpec(seed)
                                : randomRopeSpec(seed);
    const std::string hash = spec.structuralHash();
    spec.epsilon = 1;
    if (spec.running) spec.running->decay = spec.running->init = 0.5;
    spec.approximate.decay = 0.5;
    if (spec.approximate.clampGamma) spec.approximate.clampGamma = 1;
    spec.renorm = {spec.renorm.kind, 1, 0, 0, spec.renorm.forward};
    if (spec.pre) spec.pre->epsilon = 1;
    if (spec.warmup) spec.warmup->steps = 0;
    if (spec.scaleOffset) spec.scaleOffset = 1;
    if (spec.modulate) spec.modulate->offset = 1;
    if (spec.quantize) spec.quantize->floor = 1;
    EXPECT_TRUE(seen.emplace(hash, spec).first->second == spec) << "seed " << seed;
  }
}

std::string numbersOf(const std::string& name) {
  std::string out;
  for (const Number& number : numbers(**findNorm(name)))
    out += number.name + "=" + numberText(number.value) + " ";
  return out;
}

TEST(Numbers, AreThoseThatTheSpecHasInOrder) {
  EXPECT_EQ(numbersOf("layer_norm"), "epsilon=1e-5 ");
  EXPECT_EQ(numbersOf("batch_norm"), "epsilon=1e-5 decay=0.9 ");
  EXPECT_EQ(numbersOf("power_norm"), "epsilon=1e-5 decay=0.9 backward_decay=0.9 ");
  EXPECT_EQ(numbersOf("power_norm_released"),
            "epsilon=1e-5 pre_epsilon=1e-5 decay=0.9 backward_decay=0.9 warmup_steps=4000 ");
  EXPECT_EQ(numbersOf("batch_renorm"),
            "epsilon=1e-5 decay=0.99 renorm_rmax=3 renorm_dmax=5 renorm_start=5000 ");
  EXPECT_EQ(numbersOf("mabn"), "epsilon=1e-5 decay=0.98 warmup_steps=100 renorm_rmax=5 renorm_start=1000 ");
  EXPECT_EQ(numbersOf("unified_norm"),
            "epsilon=1e-5 decay=0.9 backward_decay=0.9 warmup_steps=4000 renorm_rmax=5 renorm_start=1000 ");
}

std::string rangesOf(const std::string& text) {
  std::string out;
  for (const auto& [name, value, legal] : numbers(specOf(text))) {
    out += name;
    if (std::isfinite(legal.least)) out += " >= " + numberText(legal.least);
    if (std::isfinite(legal.above)) out += " > " + numberText(legal.above);
    if (std::isfinite(legal.below)) out += " < " + numberText(legal.below);
    out += legal.whole ? " whole; " : "; ";
  }
  return out;
}

TEST(Numbers, HaveTheRangesThatTheRulesGive) {  // C22 to C26
  EXPECT_EQ(rangesOf("norm n from power_norm {\n}\n"),
            "epsilon >= 0; decay >= 0 < 1; backward_decay >= 0 < 1; ");
  EXPECT_EQ(
      rangesOf(
          "norm n from power_norm_released {\n  backward approximate(scale = batch, clamp_gamma = 2)\n}\n"),
      "epsilon > 0; pre_epsilon > 0; decay >= 0 < 1; backward_decay >= 0 < 1; clamp_gamma > 0; "
      "warmup_steps >= 0 whole; ");
  EXPECT_EQ(rangesOf("norm n from batch_renorm {\n}\n"),
            "epsilon > 0; decay >= 0 < 1; renorm_rmax >= 1; renorm_dmax >= 0; renorm_start >= 0 whole; ");
}

TEST(Numbers, AModulationHasItsOffsetWhereItHasAScale) {
  EXPECT_EQ(rangesOf(norm({"reduce features", "affine scale(offset = 1)", "modulate scale, shift"})),
            "epsilon > 0; scale_offset; mod_offset; ");
  EXPECT_EQ(rangesOf(norm({"reduce features", "modulate shift"})), "epsilon > 0; ");
  EXPECT_EQ(numbers(specOf(norm({"reduce features", "modulate scale"}))).back().value, 1);
  const auto hash = [](const std::string& offset) {
    return specOf(norm({"reduce features", "modulate scale(offset = " + offset + ")"})).structuralHash();
  };
  EXPECT_EQ(hash("1"), hash("0"));
}

TEST(Numbers, AnOffsetOfTheAffineFollowsTheOthers) {
  const std::string text = "norm n from batch_renorm {\n  affine scale(offset = 0.5), bias\n}\n";
  EXPECT_EQ(rangesOf(text),
            "epsilon > 0; decay >= 0 < 1; renorm_rmax >= 1; renorm_dmax >= 0; renorm_start >= 0 whole; "
            "scale_offset; ");
  EXPECT_EQ(numbers(specOf(text)).back().value, 0.5);
  const auto hash = [](const std::string& offset) {
    return specOf("norm n from rms_norm {\n  affine scale(offset = " + offset + ")\n}\n").structuralHash();
  };
  EXPECT_EQ(hash("1"), hash("-2"));
  EXPECT_NE(hash("1"), hash("0"));
  EXPECT_EQ(hash("0"), hashOf("rms_norm"));
}

TEST(Numbers, AScaleThatIsNotGivenHasItsFloor) {
  const auto text = [](const std::string& options) {
    return norm({"reduce features", "affine scale(offset = 1)", "quantize int8(" + options + ")"});
  };
  EXPECT_EQ(rangesOf(text("per = block")), "epsilon > 0; scale_offset; quant_floor >= 1e-30; ");
  EXPECT_EQ(rangesOf(text("per = tensor")), "epsilon > 0; scale_offset; ");
  EXPECT_EQ(numbers(specOf(text("floor = 1e-4"))).back().value, 1e-4);
  EXPECT_EQ(specOf(text("floor = 1e-4")).structuralHash(), specOf(text("per = row")).structuralHash());
}

TEST(Numbers, ClampGammaIsOneWhereItIsOn) {
  const Spec spec = specOf("norm n from power_norm {\n  backward approximate(clamp_gamma = 4)\n}\n");
  EXPECT_EQ(numbers(spec).back().name, "clamp_gamma");
  EXPECT_EQ(numbers(spec).back().value, 4);
}

}  // namespace
}  // namespace normc
