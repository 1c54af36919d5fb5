// Codes and their scales behind each kind of statistic, judged by the gate. Random specs mix them with what
// else surrounds a norm.
#include <gtest/gtest.h>

#include "codegen/plan/Planner.h"
#include "tests/end_to_end/WithClauses.h"

namespace normc {
namespace {

using codegen::Strategy;

struct Norm {
  const char *name, *text, *shape, *options;
};
struct Codes8 {
  const char *name, *text;
};

class Quantized : public testing::TestWithParam<std::tuple<Norm, Codes8>> {};

TEST_P(Quantized, PassesTheGate) {
  const auto& [norm, codes] = GetParam();
  int kernels = 0;
  for (const char* call : {":forward@f32", ":infer@bf16", ":forward@f64", ":infer@f16"}) {
    const auto problem = problemWith(norm.text, codes.text, std::string(call) + norm.shape + norm.options);
    ASSERT_TRUE(problem);
    for (const Strategy strategy : codegen::cpu::strategies(*problem)) {
      expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), strategy));
      ++kernels;
    }
  }
  EXPECT_GE(kernels, 4);
}

const Codes8 kTensors[] = {{"Int8", "quantize int8(per = tensor)"}, {"E4M3", "quantize e4m3(per = tensor)"}};
const Codes8 kRows[] = {{"Int8OfRows", "quantize int8"},
                        {"E4M3OfRows", "quantize e4m3; residual before"},
                        {"Int8OfBlocks", "quantize int8(per = block, size = 12)"},
                        {"E4M3OfBlocks", "quantize e4m3(per = block, size = 48, scale = power_of_two)"},
                        {"PowersOfRows", "quantize int8(scale = power_of_two); activation silu; gate silu"}};

std::string nameOf(const testing::TestParamInfo<Quantized::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(PerTensor, Quantized,
                         testing::Combine(testing::Values(Norm{"Rms", "rms_norm", "[*x100]", ""},
                                                          Norm{"Batch", "batch_norm", "[*x40]", "{mask}"},
                                                          Norm{"Instance", "instance_norm", "[*x*x36]", ""},
                                                          Norm{"BatchChannels", "batch_norm", "[*x12x*]",
                                                               "{layout=channels_first}"},
                                                          Norm{"LayerChannels", "layer_norm", "[*x12x*]",
                                                               "{layout=channels_first}"}),
                                          testing::ValuesIn(kTensors)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(PerRow, Quantized,
                         testing::Combine(testing::Values(Norm{"Rms", "rms_norm", "[*x144]", ""},
                                                          Norm{"Layer", "layer_norm", "[*x*x480]", "{mask}"},
                                                          Norm{"Batch", "batch_norm", "[*x96]", "{mask}"},
                                                          Norm{"Power", "power_norm", "[*x*x240]", ""}),
                                          testing::ValuesIn(kRows)),
                         nameOf);

/// A block lies in one group.
TEST(Quantized, BlocksMayBePartsOfGroups) {
  const auto problem =
      problemWith("group_norm", "quantize e4m3(per = block, size = 8)", ":forward@f32[*x96]{groups=4}");
  ASSERT_TRUE(problem);
  expectRight(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Resident));
}

/// The width of a block is known where the number of features is not, and so is a mask of its lanes.
TEST(Quantized, BlocksMayBeOneFeatureOfAnyNumber) {
  for (const char* codes : {"quantize e4m3(per = block, size = 1)", "quantize int8(per = block, size = 3)"})
    for (const char* norm : {"rms_norm", "batch_norm"}) {
      const auto problem = problemWith(norm, codes, ":infer@f32[*x*]");
      ASSERT_TRUE(problem);
      for (const Strategy strategy : codegen::cpu::strategies(*problem)) {
        const auto schedule = codegen::cpu::defaultSchedule(*problem, hostIsa(), strategy);
        const auto kernel = compiled(*problem, schedule, hostIsa(), 1);
        ASSERT_TRUE(kernel->plan) << kernel->error;
        for (const int64_t rows : {1, 33}) {
          const auto question = gate::questionFor(*problem, {.extents = {1, rows, 21}});
          ASSERT_TRUE(question) << normc::text(question.errors());
          const gate::Verdict verdict = gate::judge(kernel->plan, *problem, *question);
          EXPECT_TRUE(verdict.ok) << verdict.text;
        }
      }
    }
}

TEST(Quantized, ChecksTheShapeOfScales) {
  std::vector<float> values(16, 1), scales(4, 1);
  std::vector<int8_t> codes(16);
  const auto view = [](void* data, DLDataType type, std::vector<int64_t>& shape) {
    return DLTensor{data, {kDLCPU, 0}, int32_t(shape.size()), type, shape.data(), nullptr, 0};
  };
  const auto refusal = [&](const char* clause, std::vector<int64_t> shape) -> std::string {
    const auto problem = problemWith("rms_norm", std::string("affine none; ") + clause, ":infer@f32[*x8]");
    const auto kernel =
        compiled(*problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), Strategy::Resident), hostIsa());
    std::vector<int64_t> twoRows{2, 8};
    const DLTensor x = view(values.data(), {kDLFloat, 32, 1}, twoRows),
                   y = view(codes.data(), {kDLInt, 8, 1}, twoRows),
                   scale = view(scales.data(), {kDLFloat, 32, 1}, shape);
    normc_args args = {};
    args.struct_size = sizeof args;
    args.x = &x, args.codes = &y;
    (problem->spec->isQuantizedPer(QuantizePer::Tensor) ? args.quant_scale : args.quant_scale_out) = &scale;
    return normc_execute(kernel->plan, &args) == NORMC_OK ? "accepted" : normc_last_error();
  };
  EXPECT_EQ(
      refusal("quantize int8", {2, 2}),
      "quant_scale_out must have the shape of x with one scale in place of features, 2 rows of 1; it has "
      "4 elements in 2 dimensions");
  EXPECT_EQ(
      refusal("quantize int8(per = block, size = 4)", {2}),
      "quant_scale_out must have the shape of x with blocks in place of features, 2 rows of 2; it has 2 "
      "elements in 1 dimensions");
  EXPECT_EQ(refusal("quantize int8(per = tensor)", {2}), "quant_scale has 2 elements; it must have one");
}

/// With data of f64 a y may be larger than the largest code of the largest scale.
TEST(Quantized, WhatNoScaleReachesSaturates) {
  for (const char* codes : {"quantize int8", "quantize e4m3", "quantize int8(scale = power_of_two)"}) {
    const auto problem = problemWith("rms_norm", codes, ":infer@f64[*x4]");
    ASSERT_TRUE(problem);
    const auto asked = gate::questionFor(*problem, {.extents = {1, 5, 4}});
    ASSERT_TRUE(asked) << normc::text(asked.errors());
    gate::Question question = *asked;
    question.arguments.scale = {1e45, 1e40, 1e40, 1e30};
    const auto want = evaluate(*problem, question.arguments);
    ASSERT_TRUE(want) << normc::text(want.errors());
    question.want = *want;
    for (const Strategy strategy : codegen::cpu::strategies(*problem)) {
      const auto schedule = codegen::cpu::defaultSchedule(*problem, hostIsa(), strategy);
      const auto kernel = compiled(*problem, schedule, hostIsa());
      ASSERT_TRUE(kernel->plan) << kernel->error;
      const gate::Verdict verdict = gate::judge(kernel->plan, *problem, question);
      EXPECT_TRUE(verdict.ok) << verdict.text;
    }
  }
}

/// A power of two is not below the largest element by any digit of f64.
TEST(Quantized, PowersOfTwoAreNotBelowAWideQuotient) {
  const auto problem =
      problemWith("batch_norm", "affine none;quantize int8(scale = power_of_two)", ":infer@f64[*x8]");
  ASSERT_TRUE(problem);
  ReferenceCall call = *gate::argumentsFor(*problem, {.extents = {1, 1, 8}});
  call.state["running_mean"].assign(8, 0);
  call.state["running_var"].assign(8, 1 - problem->spec->epsilon);
  const auto kernel = compiled(
      *problem, codegen::cpu::defaultSchedule(*problem, hostIsa(), codegen::cpu::strategies(*problem)[0]),
      hostIsa());
  ASSERT_TRUE(kernel->plan) << kernel->error;
  for (const auto& [excess, scale] :
       {std::pair(0.0, 0.125), {0x1p-52, 0.25}, {0x1p-24, 0.25}, {-0x1p-53, 0.125}}) {
    call.x = {0, 0, 0, 127 * 0.125 * (1 + excess), 0, -0.25, 0, 0};
    const gate::CallResult result = gate::Call(kernel->plan, *problem, call, {}).run();
    EXPECT_EQ(result.fault, "");
    EXPECT_EQ(result.outputs.at("quant_scale_out"), std::vector{scale}) << excess;
  }
}

TEST(Quantized, SaysWhatNoStrategyDoes) {
  const auto whyNot = [](const char* norm, const char* clauses, const char* rest) {
    return codegen::whyNoStrategy(*problemWith(norm, clauses, rest)).value_or("");
  };
  EXPECT_EQ(whyNot("group_norm", "quantize int8", ":forward@f32[*x96]{groups=4}"),
            "a row of 4 groups has one scale of codes: quantize per = block");
  EXPECT_EQ(whyNot("group_norm", "quantize int8(per = block, size = 16)", ":forward@f32[*x96]{groups=4}"),
            "blocks of 16 features lie in several groups of 24; their size has to divide it");
  EXPECT_EQ(
      whyNot("instance_norm", "quantize int8", ":forward@f32[*x*x96]"),
      "a slab of a segment has no rows of its own, which scales of codes are of: quantize per = tensor");
  EXPECT_EQ(whyNot("power_norm_released", "quantize int8", ":forward@f32[*x96]{heads=4}"),
            "groups of 'pre' do not have the scales of whole rows of codes: quantize per = tensor");
  EXPECT_EQ(whyNot("rms_norm", "quantize int8", ":backward@f32[*x96]"), "");
}

}  // namespace
}  // namespace normc
