#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "dsl/Problem.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(Problem, ReadsItsParts) {
  const Problem problem = problemOf("power_norm_released:backward@f16[*x1024]{heads=16,mask,params=f16}");
  EXPECT_EQ(problem.spec->name, "power_norm_released");
  EXPECT_EQ(problem.entry, Entry::Backward);
  EXPECT_EQ(problem.data, DType::F16);
  EXPECT_EQ(problem.params, DType::F16);
  EXPECT_EQ(problem.statistics(), DType::F32);
  EXPECT_EQ(problem.features, 1024);
  EXPECT_EQ(problem.layout, Layout::FeaturesLast);
  EXPECT_FALSE(problem.segmented);
  EXPECT_TRUE(problem.mask);
  EXPECT_EQ(problem.groups(problem.spec->pre->groups), 16);
  EXPECT_EQ(problem.groups(problem.spec->groups), 1);
  EXPECT_EQ(problem.featuresMultiple(), 16);
}

TEST(Problem, CanonicalTextsReadBack) {
  for (const char* text : {
           "layer_norm:forward@f32[*x1024]",
           "power_norm:backward@bf16[*x*]",
           "instance_norm:forward@f32[*x*x64]",
           "batch_norm:infer@f16[*x64x*]{layout=channels_first}",
           "power_norm_released:forward@bf16[*x1024]{heads=16,mask,params=bf16}",
           "group_norm_segment:backward@f64[*x*x*]{groups=32}",
           "group_norm_segment:backward@f32[*x*x*]{groups=32,layout=channels_first,mask}",
           "layer_norm:forward@f64[*x7]{params=f32}",
           "group_scaling:infer@f32[*x12]{groups=3}",
           "rms_norm:forward@f32[*x4096]{y=bf16}",
           "layer_norm:backward@bf16[*x8]{mask,params=bf16,y=f32}",
           "rms_norm_residual:forward@bf16[*x4096]{stream=f32}",
           "rms_norm:infer@bf16[*x4096]{params=bf16,round=normalized}",
           "layer_norm_residual:backward@bf16[*x8]{mask,params=bf16,stream=f32,y=f16}",
           "rms_norm_residual_e4m3_block:forward@bf16[*x4096]",
       }) {
    const auto problem = parseProblem(text, findNorm);
    ASSERT_TRUE(problem) << normc::text(problem.errors());
    EXPECT_EQ(problem->text(), text);
  }
}

TEST(Problem, TheTextSpellsOutOnlyWhatDiffersFromTheDefault) {
  EXPECT_EQ(problemOf("layer_norm:forward@f32[*x8]{params=f32,layout=features_last}").text(),
            "layer_norm:forward@f32[*x8]");
  EXPECT_EQ(problemOf("layer_norm:forward@f64[*x8]{params=f64}").text(), "layer_norm:forward@f64[*x8]");
}

// The runtime reads problems without the language.
TEST(Problem, TextsOfBuiltinNormsReadTheSameWithoutTheirDefinition) {
  int texts = 0;
  for (const BuiltinNorm& norm : builtinNorms())
    for (const Entry entry : kEntries)
      for (const Layout layout : kLayouts)
        for (const bool mask : {false, true}) {
          Problem problem{.spec = *findNorm(norm.name),
                          .entry = entry,
                          .data = DType::BF16,
                          .layout = layout,
                          .mask = mask};
          problem.segmented = layout == Layout::ChannelsFirst || problem.spec->needsSegments();
          problem.features = 64;
          for (const std::string& binding : bindingNames(*problem.spec)) problem.bindings[binding] = 4;
          if (!checkProblem(problem)) continue;
          ++texts;
          EXPECT_EQ(parseProblemText(problem.text()), problem.parts()) << problem.text();
          const auto request = parseProblemText(problem.text(2, 3));
          ASSERT_TRUE(request) << problem.text(2, 3);
          EXPECT_EQ(request->withoutSizes().text(), problem.text());
          const auto bound = parseRequest(request->text(), findNorm);
          ASSERT_TRUE(bound) << normc::text(bound.errors());
          EXPECT_EQ(bound->text(), problem.text());
        }
  EXPECT_GT(texts, 50);
}

TEST(ProblemErrors, OfARequestPointIntoTheTextAsItWasWritten) {
  const auto request = parseRequest("layer_norm:forward@f31[16x8]", findNorm);
  ASSERT_FALSE(request);
  EXPECT_EQ(normc::text(request.errors()).find("stays open"), std::string::npos);
  EXPECT_NE(normc::text(request.errors()).find("layer_norm:forward@f31[16x8]\n"), std::string::npos);
}

TEST(ProblemErrors, P1_RowsOfARequestHave64Bits) {
  const auto request = parseRequest("layer_norm:forward@f32[9223372036854775808x8]", findNorm);
  ASSERT_FALSE(request);
  EXPECT_EQ(normc::text(request.errors()),
            "error: '9223372036854775808' is too large [P1]\n"
            "  layer_norm:forward@f32[9223372036854775808x8]\n"
            "                         ^~~~~~~~~~~~~~~~~~~\n"
            "  hint: use at most 2^63 - 1\n");
  EXPECT_TRUE(parseRequest("layer_norm:forward@f32[9223372036854775807x8]", findNorm));
}

TEST(Problem, OptionsMayStandInAnyOrder) {
  EXPECT_EQ(problemOf("power_norm_released:forward@bf16[*x*]{params=bf16,mask,heads=2}").text(),
            "power_norm_released:forward@bf16[*x*]{heads=2,mask,params=bf16}");
}

TEST(Problem, ParametersAreF64WithF64Data) {
  EXPECT_EQ(problemOf("layer_norm:forward@f64[*x8]").params, DType::F64);
  EXPECT_EQ(problemOf("layer_norm:forward@bf16[*x8]").params, DType::F32);
}

TEST(Problem, NamesAndSizesOfTypes) {
  EXPECT_EQ(name(DType::BF16), "bf16");
  EXPECT_EQ(name(Entry::Infer), "infer");
  EXPECT_EQ(name(Layout::ChannelsFirst), "channels_first");
  EXPECT_EQ(bytes(DType::F32), 4);
  EXPECT_EQ(bytes(DType::F64), 8);
  EXPECT_EQ(bytes(DType::BF16), 2);
  EXPECT_EQ(bytes(DType::F16), 2);
}

TEST(Problem, ListsTheBindingsOfASpec) {
  EXPECT_EQ(bindingNames(**findNorm("power_norm_released")), std::vector<std::string>{"heads"});
  EXPECT_EQ(bindingNames(**findNorm("layer_norm")), std::vector<std::string>{});
}

TEST(ProblemErrors, SuggestTheNearestNorm) {
  EXPECT_EQ(problemErrors("layr_norm:forward@f32[*x1024]"),
            "error: there is no norm 'layr_norm'\n"
            "  layr_norm:forward@f32[*x1024]\n"
            "  ^~~~~~~~~\n"
            "  hint: did you mean 'layer_norm'?\n");
  EXPECT_EQ(
      problemErrors("zzz:forward@f32[*x1024]"),
      "error: there is no norm 'zzz'\n"
      "  zzz:forward@f32[*x1024]\n"
      "  ^~~\n"
      "  hint: the built-in norms are adaptive_layer_norm, adaptive_layer_norm_zero, batch_norm, "
      "batch_norm_relu, "
      "batch_norm_unbiased, batch_renorm, delta_gated_rms_norm, gated_rms_norm, gemma_rms_norm, "
      "gemma_sandwich, "
      "group_norm, group_norm_segment, group_norm_silu, group_scaling, instance_norm, l2_norm, layer_norm, "
      "layer_norm_channels, layer_norm_residual, mabn, power_norm, power_norm_released, power_norm_v, "
      "qk_norm_rope, resnet_tail, rms_norm, "
      "rms_norm_residual, rms_norm_residual_e4m3_block, rms_norm_residual_int8 or unified_norm\n");
}

TEST(ProblemErrors, AllOfOneTextInOneRun) {
  EXPECT_EQ(problemErrors("layer_norm:foward@fp32[4x8]{layout=channel_first,msk}"),
            "error: 'foward' is no entry\n"
            "  layer_norm:foward@fp32[4x8]{layout=channel_first,msk}\n"
            "             ^~~~~~\n"
            "  hint: did you mean 'forward'?\n"
            "error: 'fp32' is no dtype\n"
            "  layer_norm:foward@fp32[4x8]{layout=channel_first,msk}\n"
            "                    ^~~~\n"
            "  hint: did you mean 'f32'?\n"
            "error: the number of rows stays open, not '4' [P1]\n"
            "  layer_norm:foward@fp32[4x8]{layout=channel_first,msk}\n"
            "                         ^\n"
            "  hint: write '*'\n"
            "error: 'channel_first' is no layout\n"
            "  layer_norm:foward@fp32[4x8]{layout=channel_first,msk}\n"
            "                                     ^~~~~~~~~~~~~\n"
            "  hint: did you mean 'channels_first'?\n"
            "error: 'layer_norm' has no option 'msk' [P4]\n"
            "  layer_norm:foward@fp32[4x8]{layout=channel_first,msk}\n"
            "                                                   ^~~\n"
            "  hint: did you mean 'mask'?\n");
}

TEST(ProblemErrors, ShowTheFormWhereTheTextHasNone) {
  const std::string form =
      "  hint: a problem reads NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g. layer_norm:forward@f32[*x1024]\n";
  EXPECT_EQ(problemErrors(""), "error: expected the name of a norm, found the end\n" + form);
  EXPECT_EQ(problemErrors("layer_norm"),
            "error: expected ':', found the end\n  layer_norm\n            ^\n" + form);
  EXPECT_EQ(problemErrors("layer_norm:forward f32"),
            "error: expected '@', found ' '\n  layer_norm:forward f32\n                    ^\n" + form);
  EXPECT_EQ(
      problemErrors("layer_norm:forward@f32"),
      "error: expected '[', found the end\n  layer_norm:forward@f32\n                        ^\n" + form);
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x"),
            "error: expected '*' or a number, found the end\n  layer_norm:forward@f32[*x\n" +
                std::string(27, ' ') + "^\n" + form);
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*,8]"),
            "error: expected 'x' or ']', found ','\n  layer_norm:forward@f32[*,8]\n" + std::string(26, ' ') +
                "^\n" + form);
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x8]{"),
            "error: expected an option, found the end\n  layer_norm:forward@f32[*x8]{\n" +
                std::string(30, ' ') + "^\n" + form);
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x8]{mask"),
            "error: expected ',' or '}', found the end\n  layer_norm:forward@f32[*x8]{mask\n" +
                std::string(34, ' ') + "^\n" + form);
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x8]x"),
            "error: expected the end, found 'x'\n  layer_norm:forward@f32[*x8]x\n" + std::string(29, ' ') +
                "^\n" + form);
}

TEST(ProblemErrors, P1_RowsStayOpenAndFeaturesAreOneOrMore) {
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x0]"),
            "error: the number of features is 0 [P1]\n"
            "  layer_norm:forward@f32[*x0]\n"
            "                           ^\n"
            "  hint: use 1 or more, or * for any\n");
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x99999999999999999999]"),
            "error: '99999999999999999999' is too large [P1]\n"
            "  layer_norm:forward@f32[*x99999999999999999999]\n"
            "                           ^~~~~~~~~~~~~~~~~~~~\n"
            "  hint: use at most 2^40\n");
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x1099511627777]"),
            "error: the number of features is 1099511627777 [P1]\n"
            "  layer_norm:forward@f32[*x1099511627777]\n"
            "                           ^~~~~~~~~~~~~\n"
            "  hint: use at most 2^40, or * for any\n");
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x1099511627776]"), "");
  EXPECT_EQ(problemErrors("instance_norm:forward@f32[*x64x*]"),
            "error: the number of rows stays open, not '64' [P1]\n"
            "  instance_norm:forward@f32[*x64x*]\n"
            "                              ^~\n"
            "  hint: write '*'; the features stand in the middle only with {layout=channels_first}\n");
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*]"),
            "error: a shape has two or three dimensions, not 1 [P1]\n"
            "  layer_norm:forward@f32[*]\n"
            "                         ^\n"
            "  hint: write rows x features, e.g. [*x1024], or segments x rows x features, e.g. [*x*x64]\n");
}

TEST(ProblemErrors, P1_SaysWhereTheFeaturesStand) {
  EXPECT_EQ(problemErrors("instance_norm:backward@f32[*x*x64]{layout=channels_first}"),
            "error: the number of rows stays open, not '64' [P1]\n"
            "  instance_norm:backward@f32[*x*x64]{layout=channels_first}\n"
            "                                 ^~\n"
            "  hint: with channels_first the features stand in the middle: [*x64x*]\n");
  for (const char* shape : {"[*x32x64]", "[8x64x*]"})
    EXPECT_TRUE(problemErrors("instance_norm:infer@f32" + std::string(shape) + "{layout=channels_first}")
                    .ends_with("  hint: write '*'\n"))
        << shape;
}

TEST(ProblemErrors, P2_SegmentsNeedThreeDimensions) {
  EXPECT_EQ(problemErrors("instance_norm:forward@f32[*x64]"),
            "error: 'instance_norm' has 'reduce segment' and needs three dimensions [P2]\n"
            "  instance_norm:forward@f32[*x64]\n"
            "                            ^~~~\n"
            "  hint: write segments x rows x features, e.g. [*x*x64]\n");
  EXPECT_EQ(problemErrors("instance_norm:forward@f32[*x*x64]"), "");
}

TEST(ProblemErrors, P3_ChannelsFirstNeedsThreeDimensionsAndNoScaledGroups) {
  EXPECT_EQ(problemErrors("batch_norm:forward@f32[*x64]{layout=channels_first}"),
            "error: layout=channels_first needs three dimensions, not 2 [P3]\n"
            "  batch_norm:forward@f32[*x64]{layout=channels_first}\n"
            "                         ^~~~\n"
            "  hint: write segments x features x rows, e.g. [*x64x*]\n");
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x64x*]{layout=channels_first}"), "");
  EXPECT_EQ(problemErrors("group_norm:backward@bf16[*x*x*]{layout=channels_first,groups=4,mask}"), "");
  EXPECT_EQ(problemErrors("power_norm_released:forward@f32[*x64x*]{layout=channels_first,heads=2}"),
            "error: layout=channels_first does not go with the 'pre' of 'power_norm_released' [P3]\n"
            "  power_norm_released:forward@f32[*x64x*]{layout=channels_first,heads=2}\n"
            "                                                 ^~~~~~~~~~~~~~\n"
            "  hint: the features that it scales by one number must lie together: leave the layout out\n");
}

TEST(ProblemErrors, AnUnknownLayoutIsTheOnlyErrorOfItsShape) {
  EXPECT_EQ(problemErrors("batch_norm:forward@f32[*x64x*]{layout=nchw}"),
            "error: 'nchw' is no layout\n"
            "  batch_norm:forward@f32[*x64x*]{layout=nchw}\n"
            "                                        ^~~~\n"
            "  hint: write 'channels_first', with the features in the middle: [*x64x*]\n");
}

TEST(ProblemErrors, P4_BindingsAreThoseOfTheNorm) {
  EXPECT_EQ(problemErrors("power_norm_released:forward@f32[*x64]"),
            "error: 'power_norm_released' needs the number of its groups 'heads' [P4]\n"
            "  power_norm_released:forward@f32[*x64]\n"
            "  ^~~~~~~~~~~~~~~~~~~\n"
            "  hint: add it in braces, e.g. {heads=8}\n");
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x64]{heads=4}"),
            "error: 'layer_norm' has no option 'heads' [P4]\n"
            "  layer_norm:forward@f32[*x64]{heads=4}\n"
            "                               ^~~~~\n"
            "  hint: the options are layout, mask, params, round, stream or y\n");
  EXPECT_EQ(problemErrors("group_norm:forward@f32[*x64]{groups=0}"),
            "error: groups is 0 [P4]\n"
            "  group_norm:forward@f32[*x64]{groups=0}\n"
            "                                      ^\n"
            "  hint: use a whole number of 1 or more\n");
  EXPECT_EQ(problemErrors("group_norm:forward@f32[*x64]{groups=many}"),
            "error: 'many' is no number [P4]\n"
            "  group_norm:forward@f32[*x64]{groups=many}\n"
            "                                      ^~~~\n"
            "  hint: use a whole number of 1 or more\n");
}

TEST(ProblemErrors, P4_NamesTheBindingThatIsMissing) {
  EXPECT_EQ(problemErrors("group_norm:forward@f32[*x64]{G=8}"),
            "error: 'group_norm' has no option 'G' [P4]\n"
            "  group_norm:forward@f32[*x64]{G=8}\n"
            "                               ^\n"
            "  hint: it needs groups=N, the number of its groups\n");
  const std::pair<const char*, const char*> hints[] = {
      {"power_norm_released:forward@f32[*x64]{H=8}", "it needs heads=N, the number of its groups"},
      {"power_norm_released:forward@f32[*x64]{head=8}", "did you mean 'heads'?"},
      {"group_norm:forward@f32[*x64]{G=8,groups=8}",
       "the options are groups, layout, mask, params, round, stream or y"},
  };
  for (const auto& [problem, hint] : hints)
    EXPECT_TRUE(problemErrors(problem).ends_with("  hint: " + std::string(hint) + "\n"))
        << problemErrors(problem);
}

TEST(ProblemErrors, P4_NumbersOfTheNormAreNoOptions) {
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x64]{epsilon=1e-6}"),
            "error: 'layer_norm' has no option 'epsilon' [P4]\n"
            "  layer_norm:forward@f32[*x64]{epsilon=1e-6}\n"
            "                               ^~~~~~~\n"
            "  hint: epsilon is a number of the norm, no part of a problem: --number epsilon=1e-6 of run and "
            "explain, or request.numbers\n");
  for (const char* option : {"decay=0.9", "epsilon=+1e-6", "epsilon=.5"})
    EXPECT_TRUE(problemErrors("batch_norm:forward@f32[*x64]{" + std::string(option) + "}")
                    .ends_with("no part of a problem: --number " + std::string(option) +
                               " of run and explain, or request.numbers\n"))
        << option;
  EXPECT_TRUE(
      problemErrors("layer_norm:forward@f32[*x64]{epsilon}")
          .ends_with("no part of a problem: --number epsilon=... of run and explain, or request.numbers\n"));
  EXPECT_TRUE(problemErrors("layer_norm:forward@f32[*x64]{decay=0.9}")
                  .ends_with("  hint: the options are layout, mask, params, round, stream or y\n"));
  EXPECT_TRUE(problemErrors("group_norm:forward@f32[*x64]{groups=0.5}")
                  .ends_with("  hint: use a whole number of 1 or more\n"));
}

TEST(ProblemErrors, P4_ABindingIsAtMost2To40) {
  EXPECT_EQ(problemErrors("group_norm:forward@f32[*x*]{groups=1099511627777}"),
            "error: groups is 1099511627777 [P4]\n"
            "  group_norm:forward@f32[*x*]{groups=1099511627777}\n"
            "                                     ^~~~~~~~~~~~~\n"
            "  hint: use at most 2^40: there are no more groups than features\n");
  EXPECT_EQ(problemErrors("group_norm:forward@f32[*x64]{groups=99999999999999999999}"),
            "error: '99999999999999999999' is too large [P4]\n"
            "  group_norm:forward@f32[*x64]{groups=99999999999999999999}\n"
            "                                      ^~~~~~~~~~~~~~~~~~~~\n"
            "  hint: use at most 2^40\n");
}

TEST(ProblemErrors, P5_GroupsOfTheTextAreAtMost2To40) {
  const auto specs = readNorms("norm n {\n  reduce features(groups = 1099511627777)\n}\n", "t.norm");
  ASSERT_TRUE(specs);
  const auto problem = parseProblem("n:forward@f32[*x*]", [&](std::string_view) { return specs->front(); });
  ASSERT_FALSE(problem);
  EXPECT_EQ(text(problem.errors()),
            "error: reduce of 'n' has 1099511627777 groups [P5]\n"
            "  n:forward@f32[*x*]\n"
            "  ^\n"
            "  hint: use at most 2^40: there are no more groups than features\n");
}

TEST(ProblemErrors, P5_GroupsDivideTheFeatures) {
  EXPECT_EQ(problemErrors("power_norm_released:forward@f32[*x64]{heads=6}"),
            "error: 64 features do not divide into 6 groups (pre of 'power_norm_released') [P5]\n"
            "  power_norm_released:forward@f32[*x64]{heads=6}\n"
            "                                              ^\n"
            "  hint: the number of groups has to divide the number of features\n");
  EXPECT_EQ(problemErrors("power_norm_released:forward@f32[*x*]{heads=6}"), "");
}

TEST(ProblemErrors, P5_PointsAtABindingWhateverItsName) {
  for (const std::string binding : {"entry", "name"}) {
    const auto specs = readNorms("norm n {\n  reduce features(groups = " + binding + ")\n}\n", "t.norm");
    ASSERT_TRUE(specs);
    const std::string problem = "n:forward@f32[*x10]{" + binding + "=3}";
    const auto read = parseProblem(problem, [&](std::string_view) { return specs->front(); });
    ASSERT_FALSE(read);
    EXPECT_EQ(text(read.errors()),
              "error: 10 features do not divide into 3 groups (reduce of 'n') [P5]\n  " + problem + "\n" +
                  std::string(problem.size(), ' ') +
                  "^\n  hint: the number of groups has to divide the number of features\n");
  }
}

TEST(ProblemErrors, P5_HoldsForGroupsOfTheTextToo) {
  const auto specs = readNorms("norm n {\n  reduce features(groups = 3)\n}\n", "t.norm");
  ASSERT_TRUE(specs);
  const SpecLookup lookup = [&](std::string_view) { return specs->front(); };
  const auto problem = parseProblem("n:forward@f32[*x64]", lookup);
  ASSERT_FALSE(problem);
  EXPECT_EQ(text(problem.errors()),
            "error: 64 features do not divide into 3 groups (reduce of 'n') [P5]\n"
            "  n:forward@f32[*x64]\n"
            "                  ^~\n"
            "  hint: the number of groups has to divide the number of features\n");
}

TEST(ProblemErrors, P6_ParametersHaveTheTypeOfTheDataOrF32) {
  EXPECT_EQ(problemErrors("layer_norm:forward@f16[*x64]{params=bf16}"),
            "error: params=bf16 does not go with data of f16 [P6]\n"
            "  layer_norm:forward@f16[*x64]{params=bf16}\n"
            "                                      ^~~~\n"
            "  hint: use f32 or f16\n");
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x64]{params=f64}"),
            "error: params=f64 does not go with data of f32 [P6]\n"
            "  layer_norm:forward@f32[*x64]{params=f64}\n"
            "                                      ^~~\n"
            "  hint: with f32 data the parameters are f32: leave it out\n");
  EXPECT_EQ(problemErrors("group_scaling:forward@f16[*x64]{groups=2,params=f16}"),
            "error: params=f16, but 'group_scaling' has no parameters [P6]\n"
            "  group_scaling:forward@f16[*x64]{groups=2,params=f16}\n"
            "                                                  ^~~\n"
            "  hint: leave it out\n");
}

TEST(ProblemErrors, P7_AnOptionStandsOnce) {
  EXPECT_EQ(problemErrors("group_norm:forward@f32[*x64]{groups=2,groups=4}"),
            "error: the option 'groups' stands twice [P7]\n"
            "  group_norm:forward@f32[*x64]{groups=2,groups=4}\n"
            "                                        ^~~~~~\n"
            "  hint: leave one of them out\n");
}

TEST(ProblemErrors, P9_TheGradientOfInferNeedsAState) {
  EXPECT_EQ(
      problemErrors("layer_norm:infer_backward@f32[*x64]"),
      "error: 'layer_norm' has no state, and 'infer_backward' is the gradient of an infer that uses one "
      "[P9]\n"
      "  layer_norm:infer_backward@f32[*x64]\n"
      "             ^~~~~~~~~~~~~~\n"
      "  hint: infer of 'layer_norm' uses the statistics of its input, as forward does: its gradient is "
      "'backward'\n");
  EXPECT_EQ(problemOf("batch_norm:infer_backward@f32[*x64]").entry, Entry::InferBackward);
}

// Returns the errors of a problem of that type for a norm with these clauses.
std::string errorsOfNumbers(const std::string& clauses, const std::string& dtype) {
  const auto specs = readNorms("norm n {\n  reduce rows\n" + clauses + "}\n", "t.norm");
  if (!specs) return normc::text(specs.errors());
  const auto problem =
      parseProblem("n:forward@" + dtype + "[*x64]", [&](std::string_view) { return specs->front(); });
  return problem ? "" : normc::text(problem.errors());
}

TEST(ProblemErrors, P8_NumbersAreNormalInF32) {
  EXPECT_EQ(errorsOfNumbers("  epsilon 1e-39\n", "f32"),
            "error: epsilon of 'n' is 1e-39, and f32 holds no number so small in full precision [P8]\n"
            "  n:forward@f32[*x64]\n"
            "  ^\n"
            "  hint: data of f32, bf16 and f16 has statistics in f32: use 1.2e-38 or more, or data of f64\n");
  EXPECT_EQ(errorsOfNumbers("  running init = 1e300\n", "bf16"),
            "error: init of 'n' is 1e300, and f32 holds no number so large [P8]\n"
            "  n:forward@bf16[*x64]\n"
            "  ^\n"
            "  hint: data of f32, bf16 and f16 has statistics in f32: use at most 3.4e38, or data of f64\n");
  const std::string renorm =
      "  center current\n  moment central\n  renorm std(dmax = 1e39)\n  running init = 1e-300\n";
  EXPECT_EQ(errorsOfNumbers(renorm, "f16"),
            "error: init of 'n' is 1e-300, and f32 holds no number so small in full precision [P8]\n"
            "  n:forward@f16[*x64]\n"
            "  ^\n"
            "  hint: data of f32, bf16 and f16 has statistics in f32: use 1.2e-38 or more, or data of f64\n"
            "error: renorm_dmax of 'n' is 1e39, and f32 holds no number so large [P8]\n"
            "  n:forward@f16[*x64]\n"
            "  ^\n"
            "  hint: data of f32, bf16 and f16 has statistics in f32: use at most 3.4e38, or data of f64\n");
  EXPECT_EQ(errorsOfNumbers("  affine scale(offset = -1e-40)\n", "f32"),
            "error: scale_offset of 'n' is -1e-40, and f32 holds no number so small in full precision [P8]\n"
            "  n:forward@f32[*x64]\n"
            "  ^\n"
            "  hint: data of f32, bf16 and f16 has statistics in f32: use 1.2e-38 or more, or data of f64\n");
  EXPECT_EQ(errorsOfNumbers("  epsilon 1e-60\n  running init = 1e300\n", "f64"), "");
  EXPECT_EQ(errorsOfNumbers("  epsilon 1.2e-38\n  running decay = 0, init = 3.4e38\n", "f32"), "");
}

TEST(ProblemErrors, P11_WhatBelongsToASegmentNeedsThreeDimensions) {
  EXPECT_EQ(
      problemErrors("adaptive_layer_norm:forward@f32[*x64]"),
      "error: 'adaptive_layer_norm' has a 'modulate' for each segment and needs three dimensions [P11]\n"
      "  adaptive_layer_norm:forward@f32[*x64]\n"
      "                                  ^~~~\n"
      "  hint: write segments x rows x features, e.g. [*x*x64]\n");
  EXPECT_EQ(errorsOfNumbers("  gate silu(per = segment)\n", "f32"),
            "error: 'n' has a 'gate' for each segment and needs three dimensions [P11]\n"
            "  n:forward@f32[*x64]\n"
            "                ^~~~\n"
            "  hint: write segments x rows x features, e.g. [*x*x64]\n");
  EXPECT_EQ(errorsOfNumbers("  gate silu\n  modulate scale, per = row\n", "f32"), "");
  EXPECT_EQ(problemOf("adaptive_layer_norm:forward@f32[*x*x64]").segmented, true);
  for (const BuiltinNorm& norm : builtinNorms()) {
    Problem problem{.spec = norm.spec};
    for (const std::string& binding : bindingNames(*norm.spec)) problem.bindings[binding] = 1;
    EXPECT_EQ(checkProblem(problem).operator bool(), !norm.spec->needsSegments()) << norm.name;
  }
}

TEST(ProblemErrors, P8_HoldsForTheOffsetOfAModulation) {
  EXPECT_EQ(errorsOfNumbers("  modulate scale(offset = 1e-40), per = row\n", "f32"),
            "error: mod_offset of 'n' is 1e-40, and f32 holds no number so small in full precision [P8]\n"
            "  n:forward@f32[*x64]\n"
            "  ^\n"
            "  hint: data of f32, bf16 and f16 has statistics in f32: use 1.2e-38 or more, or data of f64\n");
}

TEST(ProblemErrors, OptionsHaveValuesOrNone) {
  EXPECT_EQ(problemErrors("layer_norm:forward@f32[*x64]{mask=1}"),
            "error: 'mask' takes no value\n"
            "  layer_norm:forward@f32[*x64]{mask=1}\n"
            "                               ^~~~~~\n"
            "  hint: write 'mask' alone, or leave it out for no mask\n");
  EXPECT_EQ(problemErrors("group_norm:forward@f32[*x64]{groups}"),
            "error: 'groups' needs a value\n"
            "  group_norm:forward@f32[*x64]{groups}\n"
            "                               ^~~~~~\n"
            "  hint: write 'groups=...'\n");
}

TEST(CheckProblem, RefusesWhatAProgramPutsTogetherWrongly) {
  Problem problem;
  problem.spec = *findNorm("group_norm");
  problem.features = 10;
  EXPECT_EQ(text(checkProblem(problem).errors()),
            "error: 'group_norm' needs the number of its groups 'groups' [P4]\n"
            "  hint: add it in braces, e.g. {groups=8}\n");
  problem.bindings["groups"] = 5;
  const auto checked = checkProblem(problem);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->text(), "group_norm:forward@f32[*x10]{groups=5}");
}

TEST(CheckProblem, RefusesBindingsThatTheNormDoesNotHave) {
  Problem problem;
  problem.spec = *findNorm("layer_norm");
  problem.bindings["heads"] = 2;
  EXPECT_EQ(text(checkProblem(problem).errors()),
            "error: 'layer_norm' has no option 'heads' [P4]\n"
            "  hint: the options are layout, mask, params, round, stream or y\n");
}

TEST(CheckProblem, ChannelsFirstIsAlwaysSegmented) {
  Problem problem;
  problem.spec = *findNorm("batch_norm");
  problem.layout = Layout::ChannelsFirst;
  const auto checked = checkProblem(problem);
  ASSERT_TRUE(checked);
  EXPECT_TRUE(checked->segmented);
}

}  // namespace
}  // namespace normc
