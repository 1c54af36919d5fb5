#include <gtest/gtest.h>

#include <set>

#include "dsl/Print.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(Print, WritesTheCanonicalText) {
  EXPECT_EQ(print(specOf("norm n from power_norm_released {\n}\n")),
            "norm n {\n"
            "  pre       group_scaling(groups = heads)\n"
            "  reduce    rows\n"
            "  divide_by running\n"
            "  running   decay = 0.9\n"
            "  warmup    steps = 4000, accumulate = cumulative_then_decay\n"
            "  backward  approximate(decay = 0.9, scale = batch)\n"
            "  affine    scale, bias\n"
            "  padding   leave_out_of_statistics\n"
            "}\n");
  EXPECT_EQ(print(specOf("norm n from unified_norm {\n  epsilon 1e-7 (mode = max)\n}\n")),
            "norm n {\n"
            "  reduce    rows\n"
            "  divide_by window(4, geometric)\n"
            "  running   decay = 0.9\n"
            "  warmup    steps = 4000\n"
            "  renorm    moment(limit = 5, start = 1000, forward = no)\n"
            "  backward  approximate(decay = 0.9, nu = average)\n"
            "  affine    scale, bias\n"
            "  epsilon   1e-7 (mode = max)\n"
            "  padding   leave_out_of_statistics\n"
            "}\n");
}

TEST(Print, WritesAnOffsetWithItsScale) {
  for (const char* affine : {"scale(offset = 1)", "scale(offset = -0.25), bias"}) {
    const Spec spec = specOf(norm({"reduce features", std::string("affine ") + affine}));
    EXPECT_EQ(print(spec), std::string("norm n {\n  reduce    features\n  affine    ") + affine + "\n}\n");
  }
}

TEST(Print, WritesAnActivationBehindTheAffine) {
  EXPECT_EQ(print(specOf(norm({"activation gelu_tanh", "epsilon 1e-4", "affine bias", "reduce features"}))),
            "norm n {\n"
            "  reduce    features\n"
            "  affine    bias\n"
            "  activation gelu_tanh\n"
            "  epsilon   1e-4\n"
            "}\n");
}

TEST(Print, WritesWhatSurroundsANormWhereItsFormulaStands) {
  EXPECT_EQ(print(specOf(norm({"activation relu", "residual before(stream = no)",
                               "modulate shift, scale, per = row", "pre group_scaling",
                               "gate silu(per = feature, at = before)", "reduce rows", "affine scale"}))),
            "norm n {\n"
            "  gate      silu(at = before, per = feature)\n"
            "  residual  before(stream = no)\n"
            "  pre       group_scaling\n"
            "  reduce    rows\n"
            "  affine    scale\n"
            "  modulate  scale, shift, per = row\n"
            "  activation relu\n"
            "}\n");
  EXPECT_EQ(
      print(specOf(norm({"residual after", "gate identity(at = after, per = segment)",
                         "modulate scale(offset = 0.5), per = segment", "moment sum", "reduce segment"}))),
      "norm n {\n"
      "  reduce    segment\n"
      "  moment    sum\n"
      "  modulate  scale(offset = 0.5)\n"
      "  gate      identity(per = segment)\n"
      "  residual  after\n"
      "}\n");
}

TEST(Print, LeavesOutTheDefaultsOfWhatSurroundsANorm) {
  const std::string text =
      print(specOf(norm({"reduce features", "residual before(stream = yes)",
                         "gate tanh(at = after, per = row)", "modulate scale(offset = 1), per = segment"})));
  EXPECT_EQ(text,
            "norm n {\n"
            "  residual  before\n"
            "  reduce    features\n"
            "  modulate  scale\n"
            "  gate      tanh\n"
            "}\n");
}

TEST(Print, WritesARotationBehindTheModulation) {
  EXPECT_EQ(print(specOf(norm({"gate silu", "rope interleaved(features = 64, groups = heads)",
                               "reduce features", "modulate shift", "affine scale"}))),
            "norm n {\n"
            "  reduce    features\n"
            "  affine    scale\n"
            "  modulate  shift\n"
            "  rope      interleaved(groups = heads, features = 64)\n"
            "  gate      silu\n"
            "}\n");
  EXPECT_EQ(print(specOf(norm({"reduce features", "rope half(groups = 1, features = all)"}))),
            "norm n {\n  reduce    features\n  rope      half\n}\n");
}

TEST(Print, WritesTheCodesBehindTheActivation) {
  EXPECT_EQ(print(specOf(norm({"quantize e4m3(floor = 1e-4, scale = power_of_two, size = 32, per = block)",
                               "reduce features", "activation relu", "epsilon 1e-6"}))),
            "norm n {\n"
            "  reduce    features\n"
            "  activation relu\n"
            "  quantize  e4m3(per = block, size = 32, scale = power_of_two, floor = 1e-4)\n"
            "  epsilon   1e-6\n"
            "}\n");
  EXPECT_EQ(
      print(specOf(norm({"reduce features", "quantize int8(per = row, scale = float, floor = 1e-10)"}))),
      "norm n {\n  reduce    features\n  quantize  int8\n}\n");
  EXPECT_EQ(print(specOf(norm({"reduce features", "quantize int8(per = block, size = 128)"}))),
            "norm n {\n  reduce    features\n  quantize  int8(per = block)\n}\n");
}

TEST(Print, RandomSpecsReadBackEqual) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Spec spec = seed % 3 == 0   ? randomSpec(seed)
                      : seed % 3 == 1 ? randomQuantizedSpec(seed)
                                      : randomRopeSpec(seed);
    const std::string text = print(spec);
    EXPECT_TRUE(specOf(text) == spec) << "seed " << seed << "\n" << text;
    EXPECT_EQ(print(specOf(text)), text);
  }
}

TEST(Print, BuiltInNormsReadBackEqual) {
  for (const BuiltinNorm& norm : builtinNorms()) {
    EXPECT_TRUE(specOf(print(*norm.spec)) == *norm.spec) << norm.name;
  }
}

TEST(Print, NumbersAreShortAndExact) {
  EXPECT_EQ(numberText(1e-5), "1e-5");
  EXPECT_EQ(numberText(0.9), "0.9");
  EXPECT_EQ(numberText(4000), "4000");
  EXPECT_EQ(numberText(1e20), "1e20");
  EXPECT_EQ(numberText(1.5e-300), "1.5e-300");
  EXPECT_EQ(numberText(0), "0");
  EXPECT_EQ(std::stod(numberText(0.1 + 0.2)), 0.1 + 0.2);
}

// A random test covers only the values that it reaches.
TEST(RandomSpec, ReachesEveryValueOfEveryFlag) {
  std::set<std::string> seen;
  const auto see = [&seen](const char* flag, int value) { seen.insert(flag + std::to_string(value)); };
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Spec spec = randomSpec(seed);
    const bool approximate = spec.backward == Backward::Approximate;
    see("reduce", static_cast<int>(spec.reduce));
    see("center", static_cast<int>(spec.center));
    see("moment", static_cast<int>(spec.moment));
    see("divide_by", static_cast<int>(spec.divideBy));
    see("window", static_cast<int>(spec.window.mean));
    see("running", spec.running.has_value());
    see("unbiased", spec.running && spec.running->unbiased);
    see("backward", static_cast<int>(spec.backward));
    if (approximate) see("nu", static_cast<int>(spec.approximate.nu));
    if (approximate) see("scale", static_cast<int>(spec.approximate.scale));
    see("clamp", spec.approximate.clampGamma.has_value());
    see("renorm", static_cast<int>(spec.renorm.kind));
    see("renorm_forward", spec.renorm.forward);
    see("affine", spec.scale * 2 + spec.bias);
    see("offset", spec.scaleOffset.has_value());
    see("activation", static_cast<int>(spec.activation));
    see("residual", !spec.residual ? 0 : spec.hasResidual(Side::After) ? 1 : 2 + spec.residual->stream);
    see("gate", spec.gate.has_value());
    if (spec.gate) see("gate_function", static_cast<int>(spec.gate->function));
    if (spec.gate) see("gate_side", static_cast<int>(spec.gate->side));
    if (spec.gate) see("gate_per", static_cast<int>(spec.gate->per));
    see("modulate", spec.modulate ? spec.modulate->scale * 2 + spec.modulate->shift : 0);
    if (spec.modulate) see("modulate_per", static_cast<int>(spec.modulate->per));
    see("epsilon_mode", static_cast<int>(spec.epsilonMode));
    see("epsilon_zero", spec.epsilon == 0);
    see("pre", spec.pre.has_value());
    see("warmup", spec.warmup.has_value());
    if (spec.warmup) see("accumulate", static_cast<int>(spec.warmup->accumulate));
    see("padding", static_cast<int>(spec.padding));
    see("groups", spec.groups.binding.empty() ? static_cast<int>(spec.groups.count) : 0);
  }
  EXPECT_EQ(seen.size(), 4u + 3 + 3 + 3 + 2 + 2 + 2 + 3 + 3 + 2 + 2 + 3 + 2 + 4 + 2 + 7 + 3 + 2 + 2 + 2 + 3 +
                             2 + 4 + (4 + 2 + 5 + 2 + 3 + 4 + 2));
}

TEST(RandomSpec, IsTheSameForTheSameSeed) { EXPECT_TRUE(randomSpec(7) == randomSpec(7)); }

}  // namespace
}  // namespace normc
