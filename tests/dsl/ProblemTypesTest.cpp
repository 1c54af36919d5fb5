// The types that a problem gives its tensors: of y, of a residual in front of the norm, of codes (P12, P13,
// P15), and of x0 before the affine (P16).
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "dsl/Problem.h"
#include "dsl/StateFields.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(Problem, YHasATypeOfItsOwn) {
  const Problem problem = problemOf("rms_norm:forward@f32[*x64]{y=bf16}");
  EXPECT_EQ(problem.output, DType::BF16);
  EXPECT_EQ(problem.types(), (ElementTypes{.output = DType::BF16}));
  for (const char* type : {"f32", "f64", "bf16", "f16"}) {
    const Problem same = problemOf(std::string("rms_norm:forward@") + type + "[*x64]{y=" + type + "}");
    EXPECT_EQ(same.output, std::nullopt) << type;
    EXPECT_EQ(same.text(), std::string("rms_norm:forward@") + type + "[*x64]");
    EXPECT_EQ(same.types().output, same.data);
  }
}

TEST(Problem, AResidualInFrontHasATypeOfItsOwn) {
  const Problem problem = problemOf("rms_norm_residual:forward@bf16[*x64]{stream=f32}");
  EXPECT_EQ(problem.stream, DType::F32);
  EXPECT_EQ(problem.types(),
            (ElementTypes{.data = DType::BF16, .output = DType::BF16, .stream = DType::F32}));
  EXPECT_EQ(problemOf("rms_norm_residual:forward@bf16[*x64]{stream=bf16}").text(),
            "rms_norm_residual:forward@bf16[*x64]");
  // An option that says nothing is legal for any norm.
  EXPECT_EQ(problemOf("rms_norm:forward@bf16[*x64]{stream=bf16}").text(), "rms_norm:forward@bf16[*x64]");
}

TEST(Problem, AResidualOfAnotherTypeHasAGradientOfItsOwn) {
  const auto gradientOf = [](const char* text) { return hasOf(problemOf(text)).gradientOfResidual(); };
  EXPECT_EQ(gradientOf("rms_norm_residual:backward@bf16[*x64]"), kDx);
  EXPECT_EQ(gradientOf("rms_norm_residual:backward@bf16[*x64]{y=f32}"), kDx);
  EXPECT_EQ(gradientOf("rms_norm_residual:backward@bf16[*x64]{stream=f32}"), kDresidual);
}

TEST(Problem, CodesHaveTheTypesOfTheirNorm) {
  const auto typesOf = [](const Spec::Quantize& quantize) {
    Spec spec = **findNorm("rms_norm");
    spec.quantize = quantize;
    Problem problem;
    problem.spec = std::make_shared<const Spec>(spec);
    return std::pair(problem.types().codes, problem.types().scales);
  };
  EXPECT_EQ(typesOf({}), std::pair(DType::I8, DType::F32));
  EXPECT_EQ(typesOf({.codes = Codes::E4M3}), std::pair(DType::E4M3, DType::F32));
  EXPECT_EQ(typesOf({.codes = Codes::E4M3, .powerOfTwo = true}), std::pair(DType::E4M3, DType::E8M0));
}

TEST(ProblemErrors, ATypeOfYIsFloating) {
  EXPECT_EQ(problemErrors("rms_norm:forward@f32[*x64]{y=half}"),
            "error: 'half' is no dtype\n"
            "  rms_norm:forward@f32[*x64]{y=half}\n"
            "                               ^~~~\n"
            "  hint: write 'f16'\n");
  const std::string codes =
      "  hint: 8-bit codes are declared in the norm; the type here is of a tensor of numbers: "
      "write 'quantize int8' or 'quantize e4m3' as a clause\n";
  EXPECT_EQ(problemErrors("rms_norm:forward@f32[*x64]{y=int8}"),
            "error: 'int8' is no dtype\n"
            "  rms_norm:forward@f32[*x64]{y=int8}\n"
            "                               ^~~~\n" +
                codes);
  EXPECT_EQ(problemErrors("rms_norm:forward@fp8[*x64]"),
            "error: 'fp8' is no dtype\n"
            "  rms_norm:forward@fp8[*x64]\n"
            "                   ^~~\n" +
                codes);
  EXPECT_EQ(problemErrors("rms_norm:forward@f32[*x64]{y}"),
            "error: 'y' needs a value\n"
            "  rms_norm:forward@f32[*x64]{y}\n"
            "                             ^\n"
            "  hint: write 'y=...'\n");
  EXPECT_EQ(problemErrors("rms_norm:forward@f32[*x64]{y=f16,y=f16}"),
            "error: the option 'y' stands twice [P7]\n"
            "  rms_norm:forward@f32[*x64]{y=f16,y=f16}\n"
            "                                   ^\n"
            "  hint: leave one of them out\n");
}

TEST(ProblemErrors, P12_BlocksOfCodesDivideTheFeaturesAndLieTogether) {
  EXPECT_EQ(problemErrors("rms_norm_residual_e4m3_block:forward@bf16[*x320]"),
            "error: 320 features do not divide into blocks of 128 ('quantize' of "
            "'rms_norm_residual_e4m3_block') [P12]\n"
            "  rms_norm_residual_e4m3_block:forward@bf16[*x320]\n"
            "                                              ^~~\n"
            "  hint: use a multiple of 128, or another 'size'\n");
  for (const char* features : {"128", "4096", "*"})
    EXPECT_EQ(problemErrors(std::string("rms_norm_residual_e4m3_block:forward@bf16[*x") + features + "]"),
              "");
  EXPECT_EQ(problemErrors("rms_norm_residual_int8:forward@bf16[*x64x*]{layout=channels_first}"),
            "error: layout=channels_first does not go with the 'quantize' per row of "
            "'rms_norm_residual_int8' [P12]\n"
            "  rms_norm_residual_int8:forward@bf16[*x64x*]{layout=channels_first}\n"
            "                                                     ^~~~~~~~~~~~~~\n"
            "  hint: the features of one scale must lie together: leave the layout out, or use 'per = "
            "tensor'\n");
  const auto tooLarge = readNorms(
      "norm n {\n  reduce features\n  quantize int8(per = block, size = 1099511627777)\n}\n", "t.norm");
  ASSERT_TRUE(tooLarge);
  const auto open = parseProblem("n:forward@f32[*x*]", [&](std::string_view) { return tooLarge->front(); });
  ASSERT_FALSE(open);
  EXPECT_EQ(text(open.errors()),
            "error: a block of 'quantize' of 'n' has 1099511627777 features [P12]\n"
            "  n:forward@f32[*x*]\n"
            "  ^\n"
            "  hint: use a 'size' of at most 2^40: no row has more features\n");
  Problem problem;
  Spec spec = **findNorm("rms_norm");
  problem.layout = Layout::ChannelsFirst;
  const auto errorsPer = [&](QuantizePer per) {
    spec.quantize = Spec::Quantize{.per = per};
    problem.spec = std::make_shared<const Spec>(spec);
    const auto checked = checkProblem(problem);
    return checked ? "" : checked.errors()[0].message;
  };
  EXPECT_EQ(errorsPer(QuantizePer::Tensor), "");
  EXPECT_EQ(errorsPer(QuantizePer::Block),
            "layout=channels_first does not go with the 'quantize' per block of 'rms_norm'");
}

TEST(ProblemErrors, P13_CodesHaveNoTypeOfY) {
  EXPECT_EQ(problemErrors("rms_norm_residual_int8:forward@bf16[*x64]{y=f16}"),
            "error: y=f16, but 'rms_norm_residual_int8' has codes in place of y [P13]\n"
            "  rms_norm_residual_int8:forward@bf16[*x64]{y=f16}\n"
            "                                              ^~~\n"
            "  hint: 'quantize' says the type of the codes: leave it out\n");
}

TEST(ProblemErrors, P13_DataInF64HaveNoOutputOf16Bits) {
  EXPECT_EQ(problemErrors("rms_norm:forward@f64[*x64]{y=f16}"),
            "error: y=f16 does not go with data of f64 [P13]\n"
            "  rms_norm:forward@f64[*x64]{y=f16}\n"
            "                               ^~~\n"
            "  hint: 16-bit types would be rounded twice, by way of f32: use y=f32, or f32 data\n");
}

TEST(ProblemErrors, P15_AStreamNeedsAResidualInFront) {
  EXPECT_EQ(
      problemErrors("rms_norm:forward@bf16[*x64]{stream=f32}"),
      "error: stream=f32, but 'rms_norm' has no residual in front of it [P15]\n"
      "  rms_norm:forward@bf16[*x64]{stream=f32}\n"
      "                                     ^~~\n"
      "  hint: it is the type of that residual and of what is passed on of it: add 'residual before' to "
      "the norm, or leave it out\n");
  EXPECT_EQ(
      problemErrors("gemma_sandwich:forward@bf16[*x64]{stream=f32}"),
      "error: stream=f32, but 'gemma_sandwich' has no residual in front of it [P15]\n"
      "  gemma_sandwich:forward@bf16[*x64]{stream=f32}\n"
      "                                           ^~~\n"
      "  hint: it is the type of that residual and of what is passed on of it: add 'residual before' to "
      "the norm, or leave it out\n");
  EXPECT_EQ(problemErrors("rms_norm_residual:forward@bf16[*x64]{stream=float}"),
            "error: 'float' is no dtype\n"
            "  rms_norm_residual:forward@bf16[*x64]{stream=float}\n"
            "                                              ^~~~~\n"
            "  hint: write 'f32'\n");
}

TEST(Problem, ForwardAndInferRoundBeforeTheAffine) {
  for (const char* entry : {"forward", "infer", "backward"}) {
    const Problem problem = problemOf(std::string("rms_norm:") + entry + "@f16[*x64]{round=normalized}");
    EXPECT_TRUE(problem.roundsNormalized) << entry;
    EXPECT_EQ(problem.roundsBeforeAffine(), !isBackward(problem.entry)) << entry;
  }
  EXPECT_FALSE(problemOf("rms_norm:forward@f16[*x64]").roundsNormalized);
}

TEST(ProblemErrors, ARoundingIsOfTheNormalizedValue) {
  EXPECT_EQ(problemErrors("rms_norm:forward@bf16[*x64]{round=bf16}"),
            "error: 'bf16' is no rounding\n"
            "  rms_norm:forward@bf16[*x64]{round=bf16}\n"
            "                                    ^~~~\n"
            "  hint: use normalized\n");
}

TEST(ProblemErrors, P16_ARoundingChangesTheOutput) {
  EXPECT_EQ(
      problemErrors("rms_norm:forward@f32[*x64]{round=normalized}"),
      "error: round=normalized changes nothing with data of f32 [P16]\n"
      "  rms_norm:forward@f32[*x64]{round=normalized}\n"
      "                                   ^~~~~~~~~~\n"
      "  hint: the type of the data is that of the statistics: leave it out, or use data of bf16 or f16\n");
  EXPECT_EQ(problemErrors("l2_norm:forward@bf16[*x64]{round=normalized}"),
            "error: round=normalized needs an affine, and 'l2_norm' has none [P16]\n"
            "  l2_norm:forward@bf16[*x64]{round=normalized}\n"
            "                                   ^~~~~~~~~~\n"
            "  hint: it rounds what the affine takes: leave it out\n");
  EXPECT_EQ(problemErrors("batch_norm:forward@bf16[*x64]{round=normalized}"),
            "error: round=normalized needs 'reduce features', and 'batch_norm' has 'reduce rows' [P16]\n"
            "  batch_norm:forward@bf16[*x64]{round=normalized}\n"
            "                                      ^~~~~~~~~~\n"
            "  hint: it is for norms of rows: leave it out\n");
}

TEST(ProblemErrors, P15_DataInF64HaveNoStreamOf16Bits) {
  EXPECT_EQ(problemErrors("rms_norm_residual:forward@f64[*x64]{stream=bf16}"),
            "error: stream=bf16 does not go with data of f64 [P15]\n"
            "  rms_norm_residual:forward@f64[*x64]{stream=bf16}\n"
            "                                             ^~~~\n"
            "  hint: 16-bit types would be rounded twice, by way of f32: use stream=f32, or f32 data\n");
}

}  // namespace
}  // namespace normc
