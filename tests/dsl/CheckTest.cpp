// One test for each rule C1 to C26 of dsl/SPEC.md: a text that it refuses, with the error, and the nearest
// legal text. AroundCheckTest.cpp has those of what surrounds a norm.
#include <gtest/gtest.h>

#include <limits>

#include "dsl/Check.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

const std::string kState = "running decay = 0.9";

TEST(Check, C1_NormsOfAFileHaveDifferentNames) {
  EXPECT_EQ(errorsOf("norm a {\n  reduce rows\n}\nnorm a {\n  reduce rows\n}\n"),
            "t.norm:4:6: error: a norm 'a' stands already in line 1 [C1]\n"
            "  norm a {\n"
            "       ^\n"
            "  hint: give one of them another name\n");
  EXPECT_EQ(errorsOf("norm a {\n  reduce rows\n}\nnorm b {\n  reduce rows\n}\n"), "");
}

TEST(Check, C2_AClauseStandsOnce) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "center none", "reduce features"})),
            "t.norm:4:3: error: the clause 'reduce' appears twice in this norm [C2]\n"
            "    reduce features\n"
            "    ^~~~~~\n"
            "  hint: leave one of them out\n");
}

TEST(Check, C2_AnOptionStandsOnce) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay = 0.9, decay = 0.8"})),
            "t.norm:3:24: error: the option 'decay' is given twice [C2]\n"
            "    running decay = 0.9, decay = 0.8\n"
            "                         ^~~~~\n"
            "  hint: leave one of them out\n");
  EXPECT_EQ(brief(norm({"reduce rows", "affine scale, scale"})),
            Texts{"the option 'scale' is given twice [C2]"});
}

TEST(Check, C3_ANormWithoutBaseHasReduce) {
  EXPECT_EQ(errorsOf(norm({"center none"})),
            "t.norm:1:6: error: norm 'n' has no 'reduce' clause [C3]\n"
            "  norm n {\n"
            "       ^\n"
            "  hint: say what one statistic is taken over: 'reduce rows', 'features', 'segment' or "
            "'segment_features'\n");
  EXPECT_EQ(errorsOf("norm n from layer_norm {\n}\n"), "");
}

TEST(Check, C3_SaysNothingWhereAnUnknownClauseMayBeTheReduce) {
  for (const char* word : {"reduc", "Reduce", "over"})
    EXPECT_EQ(brief(norm({std::string(word) + " rows"})),
              Texts{"unknown clause '" + std::string(word) + "' []"});
}

TEST(Check, C4_TheBaseExists) {
  EXPECT_EQ(errorsOf("norm n from layer_nrom {\n}\n"),
            "t.norm:1:13: error: there is no norm 'layer_nrom' [C4]\n"
            "  norm n from layer_nrom {\n"
            "              ^~~~~~~~~~\n"
            "  hint: did you mean 'layer_norm'?\n");
  EXPECT_EQ(errorsOf("norm n from xyzzy {\n}\n"),
            "t.norm:1:13: error: there is no norm 'xyzzy' [C4]\n"
            "  norm n from xyzzy {\n"
            "              ^~~~~\n"
            "  hint: a base is a norm of this file or a built-in one\n");
}

TEST(Check, C4_ANormIsNotProposedAsItsOwnBase) {
  const std::string place = "^~~~~~~~\n";
  EXPECT_TRUE(errorsOf("norm my_norms from my_norma {\n}\n")
                  .ends_with(place + "  hint: a base is a norm of this file or a built-in one\n"));
  EXPECT_TRUE(errorsOf("norm my_norms from my_norma {\n}\nnorm my_norm {\n  reduce rows\n}\n")
                  .ends_with(place + "  hint: did you mean 'my_norm'?\n"));
  EXPECT_TRUE(errorsOf("norm mabn from mban {\n}\n")
                  .ends_with("^~~~\n  hint: a base is a norm of this file or a built-in one\n"))
      << "its own name hides the built-in norm";
}

TEST(Check, C4_NoNormDescendsFromItself) {
  EXPECT_EQ(errorsOf("norm a from b {\n}\nnorm b from a {\n}\n"),
            "t.norm:3:13: error: norm 'b' descends from itself [C4]\n"
            "  norm b from a {\n"
            "              ^\n"
            "  hint: a chain of 'from' has to end in a norm without one\n");
  EXPECT_EQ(brief("norm a from a {\n}\n"), Texts{"norm 'a' descends from itself [C4]"});
  EXPECT_EQ(errorsOf("norm power_norm from power_norm {\n}\n"),
            "t.norm:1:22: error: norm 'power_norm' descends from itself [C4]\n"
            "  norm power_norm from power_norm {\n"
            "                       ^~~~~~~~~~\n"
            "  hint: give it another name: its own hides the built-in norm\n");
}

// `n0`, `n1 from n0`, ...; listed from the first or from the last.
std::string chain(int steps, bool lastFirst) {
  std::string out;
  for (int i = 0; i <= steps; ++i) {
    const std::string head = "norm n" + std::to_string(i);
    const std::string one =
        i == 0 ? head + " {\n  reduce rows\n}\n" : head + " from n" + std::to_string(i - 1) + " {\n}\n";
    out = lastFirst ? one + out : out + one;
  }
  return out;
}

TEST(Check, C4_ADescentHasAtMost16Steps) {
  const std::string tooLong =
      "norm 'n17' is more than 16 steps of 'from' away from the first of its line [C4]";
  EXPECT_EQ(brief(chain(16, false)), Texts{});
  EXPECT_EQ(brief(chain(16, true)), Texts{});
  EXPECT_EQ(brief(chain(17, false)), Texts{tooLong});
  EXPECT_EQ(brief(chain(17, true)), Texts{tooLong});
  EXPECT_EQ(brief(chain(18, false)), Texts{tooLong}) << "of a line, the first that is too far";
  EXPECT_EQ(brief(chain(2000, true)), Texts{tooLong});
  std::string ofABuiltIn = "norm n1 from layer_norm {\n}\n";
  for (int i = 2; i <= 16; ++i)
    ofABuiltIn += "norm n" + std::to_string(i) + " from n" + std::to_string(i - 1) + " {\n}\n";
  EXPECT_EQ(brief(ofABuiltIn), Texts{});
  EXPECT_EQ(brief(ofABuiltIn + "norm n17 from n16 {\n}\n"), Texts{tooLong});
}

TEST(Check, C5_OptionsStandWhereTheyMeanSomething) {
  const std::string window = "divide_by window(4, arithmetic)";
  EXPECT_EQ(errorsOf(norm({"reduce rows", window, kState, "backward approximate(nu = window, decay = 0.9)"})),
            "t.norm:5:37: error: a decay means nothing for 'nu = window' [C5]\n"
            "    backward approximate(nu = window, decay = 0.9)\n"
            "                                      ^~~~~\n"
            "  hint: leave it out, or use 'nu = average'\n");
  EXPECT_EQ(
      errorsOf(norm({"reduce rows", window, kState, "backward approximate(nu = average, clamp_gamma = 4)"})),
      "t.norm:5:38: error: 'clamp_gamma' means nothing without 'nu = feedback' [C5]\n"
      "    backward approximate(nu = average, clamp_gamma = 4)\n"
      "                                       ^~~~~~~~~~~\n"
      "  hint: leave it out, or use 'nu = feedback'\n");
  EXPECT_EQ(
      brief(norm({"reduce rows", window, kState, "backward approximate(decay = 0.8, clamp_gamma = 4)"})),
      Texts{});
}

TEST(Check, C5_AnOptionOfAnotherValueOfTheClauseIsRefused) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "backward exact(decay = 0.9)"})),
            "t.norm:3:18: error: 'backward exact' has no option 'decay' [C5]\n"
            "    backward exact(decay = 0.9)\n"
            "                   ^~~~~\n"
            "  hint: it has none\n");
  const std::pair<const char*, const char*> ofOthers[] = {
      {"backward frozen(nu = average)", "'backward frozen' has no option 'nu' [C5]"},
      {"renorm moment(dmax = 5)", "'renorm moment' has no option 'dmax' [C5]"},
      {"renorm std(forward = no)", "'renorm std' has no option 'forward' [C5]"},
      {"gate none(at = before)", "'gate none' has no option 'at' [C5]"},
      {"pre none(groups = 2)", "'pre none' has no option 'groups' [C5]"}};
  for (const auto& [clause, error] : ofOthers)
    EXPECT_EQ(brief(norm({"reduce rows", clause})), Texts{error}) << clause;
  const std::pair<const char*, const char*> ofNone[] = {
      {"backward exact(size = 4)", "'backward exact' has no option 'size' []"},
      {"renorm moment(max = 5)", "'renorm moment' has no option 'max' []"},
      {"gate silu(stream = no)", "'gate silu' has no option 'stream' []"}};
  for (const auto& [clause, error] : ofNone)
    EXPECT_EQ(brief(norm({"reduce rows", clause})), Texts{error}) << clause;
}

TEST(Check, C5_ASpecInMemoryHasNoFieldsOfFlagsThatAreOff) {
  const auto message = [](const Spec& spec) {
    const std::vector<Diagnostic> errors = checkSpec(spec);
    return errors.size() == 1 ? errors[0].message + " [" + errors[0].rule + "]"
                              : std::to_string(errors.size());
  };
  const Spec rows = specOf("norm n from batch_norm {\n}\n");
  Spec spec = rows;
  spec.groups.count = 2;
  EXPECT_EQ(message(spec), "a number of groups means nothing for 'reduce rows' [C5]");
  spec = rows;
  spec.window.size = 2;
  EXPECT_EQ(message(spec), "a window means nothing without 'divide_by window' [C5]");
  spec = rows;
  spec.approximate.decay = 0.5;
  EXPECT_EQ(message(spec), "an option of 'approximate' means nothing without 'backward approximate' [C5]");
  spec = rows;
  spec.renorm.rmax = 2;
  EXPECT_EQ(message(spec), "an option of 'renorm' means nothing without a 'renorm' clause [C5]");
  spec = specOf("norm n from mabn {\n}\n");
  spec.renorm.dmax = 1;
  EXPECT_EQ(message(spec), "'dmax' means nothing for 'renorm moment' [C5]");
  spec = specOf("norm n from mabn {\n}\n");
  spec.approximate.decay = 0.5;
  EXPECT_EQ(message(spec), "a decay means nothing for 'nu = window' [C5]");
  spec = specOf("norm n from unified_norm {\n}\n");
  spec.approximate.clampGamma = 1;
  EXPECT_EQ(message(spec), "'clamp_gamma' means nothing without 'nu = feedback' [C5]");
  spec = specOf("norm n from batch_renorm {\n}\n");
  spec.renorm.forward = false;
  EXPECT_EQ(message(spec), "'forward = no' means nothing for 'renorm std' [C5]");
}

TEST(Check, C6_AStateNeedsOneStatisticPerFeature) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "running decay = 0.9"})),
            "t.norm:3:3: error: 'running' needs 'reduce rows', but reduce is 'features' [C6]\n"
            "    running decay = 0.9\n"
            "    ^~~~~~~\n"
            "  hint: use 'reduce rows', or leave the clause out\n");
  EXPECT_EQ(brief(norm({"reduce segment", "center running", "divide_by window(4)", "backward approximate"})),
            (Texts{"'center running' needs 'reduce rows', but reduce is 'segment' [C6]",
                   "'divide_by window' needs 'reduce rows', but reduce is 'segment' [C6]",
                   "'backward approximate' needs 'reduce rows', but reduce is 'segment' [C6]"}));
  EXPECT_EQ(brief(norm({"reduce segment_features", "divide_by running"})),
            Texts{"'divide_by running' needs 'reduce rows', but reduce is 'segment_features' [C6]"});
  EXPECT_EQ(
      brief(norm({"reduce rows", kState, "center running", "divide_by running", "backward approximate"})),
      Texts{});
}

TEST(Check, C6_AnInheritedRunningIsTakenAwayByNone) {
  EXPECT_EQ(errorsOf("norm t from batch_norm {\n  reduce features\n}\n"),
            "t.norm:1:6: error: 'running' needs 'reduce rows', but reduce is 'features' [C6]\n"
            "  norm t from batch_norm {\n"
            "       ^\n"
            "  hint: use 'reduce rows', or write 'running none'\n");
}

TEST(Check, HintsNeverLeaveOutWhatTheBaseSays) {
  const auto hints = [](const std::string& text) {
    std::vector<std::string> out;
    const auto specs = readNorms(text, "t.norm");
    for (size_t i = 0; !specs && i < specs.errors().size(); ++i) out.push_back(specs.errors()[i].hint);
    return out;
  };
  EXPECT_EQ(hints("norm t from batch_norm_unbiased {\n  moment raw\n}\n"),
            Texts{"a raw moment has no factor M/(M-1): write 'running decay = 0.9' without it, or use "
                  "'moment central'"});
  EXPECT_EQ(hints("norm t from batch_norm_unbiased {\n  renorm std\n}\n"),
            Texts{"it keeps a standard deviation: write 'running decay = 0.9' without it"});
  EXPECT_EQ(hints("norm t from batch_norm_unbiased {\n  divide_by window(4)\n  backward frozen\n}\n"),
            Texts{"a window holds biased moments: write 'running decay = 0.9' without it"});
  EXPECT_EQ(hints("norm t from batch_norm_unbiased {\n  reduce features\n  running decay = 0.5\n}\n"),
            Texts{"use 'reduce rows', or write 'running none'"});
  EXPECT_EQ(hints("norm t from power_norm_released {\n  divide_by current\n  backward frozen\n"
                  "  warmup steps = 4\n}\n"),
            Texts{"the moment of this batch divides in every step: write 'warmup none'"});
  EXPECT_EQ(hints("norm t from layer_norm {\n  moment sum\n}\n"),
            Texts{"it is the sum of u^2, about 0: write 'center none', or use 'moment central', a mean about "
                  "the centre"});
  EXPECT_EQ(hints("norm t from power_norm_released {\n  divide_by current\n}\n"),
            (Texts{"use 'divide_by running', or write its 'backward' anew, without 'scale'",
                   "the moment of this batch divides in every step: write 'warmup none'"}));
}

TEST(Check, C7_CenterRunningNeedsRunning) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "center    running"})),
            "t.norm:3:13: error: 'center running' needs a state, and the norm has no 'running' clause [C7]\n"
            "    center    running\n"
            "              ^~~~~~~\n"
            "  hint: add 'running decay = 0.9', or use 'center current'\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "center running", kState})), "");
}

TEST(Check, C8_DivideByRunningNeedsRunning) {
  EXPECT_EQ(
      errorsOf(norm({"reduce rows", "divide_by running"})),
      "t.norm:3:13: error: 'divide_by running' needs a state, and the norm has no 'running' clause [C8]\n"
      "    divide_by running\n"
      "              ^~~~~~~\n"
      "  hint: add 'running decay = 0.9', or use 'divide_by current'\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "divide_by running", kState})), "");
}

TEST(Check, C9_DivideByWindowNeedsRunningAndASize) {
  EXPECT_EQ(brief(norm({"reduce rows", "divide_by window(4)", "backward frozen"})),
            Texts{"'divide_by window' needs a state, and the norm has no 'running' clause [C9]"});
  EXPECT_EQ(errorsOf(norm({"reduce rows", "divide_by window(0, geometric)", kState, "backward frozen"})),
            "t.norm:3:20: error: a window of 0 steps [C9]\n"
            "    divide_by window(0, geometric)\n"
            "                     ^\n"
            "  hint: use 1 to 4096\n");
  EXPECT_EQ(brief(norm({"reduce rows", "divide_by window(4097)", kState, "backward frozen"})),
            Texts{"a window of 4097 steps [C9]"});
  EXPECT_EQ(brief(norm({"reduce rows", "divide_by window(4096)", kState, "backward frozen"})), Texts{});
}

TEST(Check, C10_UnbiasedNeedsTheVarianceOfOneBatch) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay = 0.9, unbiased"})),
            "t.norm:3:24: error: 'unbiased' needs 'moment central', but moment is 'raw' [C10]\n"
            "    running decay = 0.9, unbiased\n"
            "                         ^~~~~~~~\n"
            "  hint: a raw moment has no factor M/(M-1): leave 'unbiased' out, or use 'moment central'\n");
  const std::string central = "moment central", unbiased = "running unbiased";
  EXPECT_EQ(brief(norm({"reduce rows", central, unbiased, "divide_by window(4)", "backward frozen"})),
            Texts{"'unbiased' does not go with 'divide_by window' [C10]"});
  EXPECT_EQ(brief(norm({"reduce rows", central, unbiased, "center current", "renorm std"})),
            Texts{"'unbiased' does not go with 'renorm std' [C10]"});
  EXPECT_EQ(brief(norm({"reduce rows", central, unbiased, "divide_by running"})), Texts{});
}

TEST(Check, C11_ApproximateNeedsRunning) {
  EXPECT_EQ(
      errorsOf(norm({"reduce rows", "backward approximate(decay = 0.9)"})),
      "t.norm:3:12: error: 'backward approximate' needs a state, and the norm has no 'running' clause [C11]\n"
      "    backward approximate(decay = 0.9)\n"
      "             ^~~~~~~~~~~\n"
      "  hint: add 'running decay = 0.9', or use 'backward exact'\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "backward approximate(decay = 0.9)", kState})), "");
}

TEST(Check, C12_ExactDoesNotGoWithAWindow) {
  EXPECT_EQ(
      errorsOf(norm({"reduce rows", "divide_by window(4)", kState, "backward exact"})),
      "t.norm:5:12: error: 'backward exact' does not go with 'divide_by window' [C12]\n"
      "    backward exact\n"
      "             ^~~~~\n"
      "  hint: a window contains this batch only in part: use 'backward approximate' or 'backward frozen'\n");
  EXPECT_EQ(brief(norm({"reduce rows", "divide_by window(4)", kState, "backward frozen"})), Texts{});
  EXPECT_EQ(brief(norm({"reduce rows", "divide_by running", kState, "backward exact"})), Texts{});
}

TEST(Check, C12_AWindowOfOtherStatisticsBreaksC6Alone) {
  EXPECT_EQ(brief(norm({"reduce features", "divide_by window(4)"})),
            Texts{"'divide_by window' needs 'reduce rows', but reduce is 'features' [C6]"});
}

TEST(Check, C13_NuWindowNeedsAWindow) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "divide_by running", kState, "backward approximate(nu = window)"})),
            "t.norm:5:29: error: 'nu = window' needs 'divide_by window', but divide_by is 'running' [C13]\n"
            "    backward approximate(nu = window)\n"
            "                              ^~~~~~\n"
            "  hint: use 'divide_by window(16, arithmetic)', or 'nu = feedback' or 'nu = average'\n");
  EXPECT_EQ(brief(norm({"reduce rows", "divide_by window", kState, "backward approximate(nu = window)"})),
            Texts{});
}

TEST(Check, C14_ScaleBatchNeedsDivideByRunning) {
  EXPECT_EQ(
      errorsOf(norm({"reduce rows", kState, "backward approximate(scale = batch)"})),
      "t.norm:4:32: error: 'scale = batch' needs 'divide_by running', but divide_by is 'current' [C14]\n"
      "    backward approximate(scale = batch)\n"
      "                                 ^~~~~\n"
      "  hint: use 'divide_by running', or leave 'scale' out\n");
  EXPECT_EQ(brief(norm({"reduce rows", kState, "divide_by running", "backward approximate(scale = batch)"})),
            Texts{});
}

TEST(Check, C15_RenormStdNeedsABatchNormalization) {
  EXPECT_EQ(
      brief(norm({"reduce rows", "divide_by running", kState, "renorm std"})),
      (Texts{"'renorm std' needs 'center current' [C15]", "'renorm std' needs 'divide_by current' [C15]",
             "'renorm std' needs 'moment central' [C15]"}));
  EXPECT_EQ(
      errorsOf(norm({"reduce rows", "center current", "moment central", "renorm std(rmax = 3, dmax = 5)"})),
      "t.norm:5:10: error: 'renorm std' needs a 'running' clause [C15]\n"
      "    renorm std(rmax = 3, dmax = 5)\n"
      "           ^~~\n"
      "  hint: write e.g. 'running decay = 0.9', or 'renorm none'\n");
  EXPECT_EQ(brief(norm({"reduce rows", "center current", "moment central", kState, "renorm std"})), Texts{});
}

TEST(Check, C15_RenormNeedsReduceRowsBeforeAnythingElse) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "renorm std"})),
            "t.norm:3:10: error: 'renorm std' needs 'reduce rows', but reduce is 'features' [C15]\n"
            "    renorm std\n"
            "           ^~~\n"
            "  hint: use 'reduce rows', or 'renorm none'\n");
  EXPECT_EQ(brief(norm({"reduce segment", "renorm moment"})),
            Texts{"'renorm moment' needs 'reduce rows', but reduce is 'segment' [C16]"});
}

TEST(Check, C16_RenormMomentNeedsAWindowOfRawMoments) {
  EXPECT_EQ(
      brief(norm({"reduce rows", "moment central", kState, "renorm moment"})),
      (Texts{"'renorm moment' needs 'divide_by window' [C16]", "'renorm moment' needs 'moment raw' [C16]"}));
  EXPECT_EQ(brief(norm({"reduce rows", "divide_by window", kState, "backward frozen", "renorm moment"})),
            Texts{});
}

TEST(Check, C16_ShowsAWindow) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "moment raw", kState, "renorm moment"})),
            "t.norm:5:10: error: 'renorm moment' needs 'divide_by window' [C16]\n"
            "    renorm moment\n"
            "           ^~~~~~\n"
            "  hint: write e.g. 'divide_by window(16, arithmetic)', or 'renorm none'\n");
}

TEST(Check, C17_PreNeedsReduceRows) {
  EXPECT_EQ(errorsOf(norm({"pre group_scaling(groups = 4)", "reduce features"})),
            "t.norm:2:7: error: 'pre group_scaling' needs 'reduce rows', but reduce is 'features' [C17]\n"
            "    pre group_scaling(groups = 4)\n"
            "        ^~~~~~~~~~~~~\n"
            "  hint: use 'reduce rows', or 'pre none'\n");
  EXPECT_EQ(brief(norm({"pre group_scaling(groups = 4)", "reduce rows"})), Texts{});
}

TEST(Check, C18_WarmupNeedsAStateThatDivides) {
  const std::string warmup = "warmup steps = 10", approximate = "backward approximate";
  EXPECT_EQ(errorsOf(norm({"reduce rows", kState, warmup, approximate})),
            "t.norm:4:3: error: 'warmup' needs 'divide_by running' or 'divide_by window', but divide_by is "
            "'current' [C18]\n"
            "    warmup steps = 10\n"
            "    ^~~~~~\n"
            "  hint: the moment of this batch divides in every step: leave 'warmup' out\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", kState, warmup, "divide_by running", "backward exact"})),
            "t.norm:4:3: error: 'warmup' does not go with 'backward exact' [C18]\n"
            "    warmup steps = 10\n"
            "    ^~~~~~\n"
            "  hint: the exact gradient changes its form after warmup: use 'backward approximate' or "
            "'backward frozen'\n");
  EXPECT_EQ(brief(norm({"reduce features", warmup})),
            Texts{"'warmup' needs 'reduce rows', but reduce is 'features' [C18]"});
  EXPECT_EQ(brief(norm({"reduce rows", kState, warmup, "divide_by running", approximate})), Texts{});
  EXPECT_EQ(brief(norm({"reduce rows", kState, warmup, "divide_by window", "backward frozen"})), Texts{});
}

TEST(Check, C19_AWindowDoesNotAccumulate) {
  const std::string warmup = "warmup steps = 10, accumulate = cumulative";
  EXPECT_EQ(errorsOf(norm({"reduce rows", kState, warmup, "divide_by window", "backward frozen"})),
            "t.norm:4:35: error: 'accumulate = cumulative' does not go with 'divide_by window' [C19]\n"
            "    warmup steps = 10, accumulate = cumulative\n"
            "                                    ^~~~~~~~~~\n"
            "  hint: a window is a mean already: use 'accumulate = decay'\n");
  EXPECT_EQ(brief(norm({"reduce rows", kState, warmup, "divide_by running", "backward frozen"})), Texts{});
}

TEST(Check, C20_LeavingPaddedRowsOutNeedsAState) {
  const std::string padding = "padding leave_out_of_statistics";
  EXPECT_EQ(
      errorsOf(norm({"reduce rows", padding})),
      "t.norm:3:11: error: 'padding leave_out_of_statistics' needs 'running' [C20]\n"
      "    padding leave_out_of_statistics\n"
      "            ^~~~~~~~~~~~~~~~~~~~~~~\n"
      "  hint: where all rows are padded, only a state can transform them: use 'padding exclude', or add "
      "'running'\n");
  EXPECT_EQ(brief(norm({"reduce features", padding})),
            Texts{"'padding leave_out_of_statistics' needs 'running' [C20]"});
  EXPECT_NE(errorsOf(norm({"reduce features", padding})).find("or add 'running' to 'reduce rows'\n"),
            std::string::npos);
  EXPECT_EQ(brief(norm({"reduce rows", padding, kState})), Texts{});
}

TEST(Check, C21_GroupsAreOneOrMoreOrABinding) {
  EXPECT_EQ(errorsOf(norm({"reduce features(groups = 0)"})),
            "t.norm:2:28: error: groups is 0 [C21]\n"
            "    reduce features(groups = 0)\n"
            "                             ^\n"
            "  hint: use 1 or more, or the name of a binding\n");
  EXPECT_EQ(brief(norm({"reduce rows", "pre group_scaling(groups = -2)"})), Texts{"groups is -2 [C21]"});
  EXPECT_EQ(errorsOf(norm({"reduce features(groups = mask)"})),
            "t.norm:2:28: error: a binding cannot be called 'mask' [C21]\n"
            "    reduce features(groups = mask)\n"
            "                             ^~~~\n"
            "  hint: that is an option of every problem: use another name\n");
  for (const std::string option : {"layout", "params", "round", "stream", "y"})
    EXPECT_EQ(brief(norm({"reduce features(groups = " + option + ")"})),
              Texts{"a binding cannot be called '" + option + "' [C21]"});
  EXPECT_EQ(brief(norm({"reduce features(groups = masks)"})), Texts{});
}

TEST(Check, C22_DecaysAreBelowOne) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay = 1"})),
            "t.norm:3:19: error: decay is 1 [C22]\n"
            "    running decay = 1\n"
            "                    ^\n"
            "  hint: use a value from 0 to below 1: the weight of the old value\n");
  EXPECT_EQ(brief(norm({"reduce rows", "running decay = -0.1", "backward approximate(decay = 1.5)"})),
            (Texts{"decay is -0.1 [C22]", "decay is 1.5 [C22]"}));
  EXPECT_EQ(brief(norm({"reduce rows", "running decay = 0", "backward approximate(decay = 0)"})), Texts{});
}

TEST(Check, C23_EpsilonIsAboveZeroWhereABatchStatisticDivides) {
  const std::string zero = "epsilon 0", running = "divide_by running";
  const std::string refused =
      "epsilon is 0, but a statistic of this batch may divide, and it may be 0 too [C23]";
  EXPECT_EQ(errorsOf(norm({"reduce features", "epsilon 0"})), "t.norm:3:11: error: " + refused + "\n" +
                                                                  "    epsilon 0\n"
                                                                  "            ^\n"
                                                                  "  hint: use a value above 0, e.g. 1e-5\n");
  EXPECT_EQ(brief(norm({"reduce rows", kState, running, zero, "backward frozen", "warmup steps = 1"})),
            Texts{refused});
  EXPECT_EQ(brief(norm({"reduce rows", kState, running, zero, "backward approximate(scale = batch)"})),
            Texts{refused});
  EXPECT_EQ(brief(norm({"reduce rows", kState, running, zero})), Texts{});
  EXPECT_EQ(brief(norm({"reduce rows", kState, running, "epsilon -1"})), Texts{"epsilon is -1 [C23]"});
  EXPECT_EQ(brief(norm({"reduce rows", "pre group_scaling(epsilon = 0)"})),
            Texts{"the epsilon of pre is 0 [C23]"});
}

TEST(Check, C24_InitIsAboveZero) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay = 0.9, init = 0"})),
            "t.norm:3:31: error: init is 0 [C24]\n"
            "    running decay = 0.9, init = 0\n"
            "                                ^\n"
            "  hint: use a value above 0\n");
  EXPECT_EQ(brief(norm({"reduce rows", "running init = 1e-9"})), Texts{});
}

TEST(Check, C25_LimitsDoNotExcludeNoCorrection) {
  const Texts base = {"reduce rows", "center current", "moment central", kState};
  const auto with = [&base](const std::string& clause) {
    Texts all = base;
    all.push_back(clause);
    return brief(norm(all));
  };
  EXPECT_EQ(with("renorm std(rmax = 0.5, dmax = -1)"), (Texts{"rmax is 0.5 [C25]", "dmax is -1 [C25]"}));
  EXPECT_EQ(with("renorm std(start = -3)"), Texts{"start is -3 [C25]"});
  EXPECT_EQ(with("renorm std(rmax = 1, dmax = 0)"), Texts{});
  EXPECT_EQ(with("backward approximate(clamp_gamma = 0)"), Texts{"clamp_gamma is 0 [C25]"});
  EXPECT_EQ(errorsOf("norm n from mabn {\n  renorm moment(limit = 0.9)\n}\n"),
            "t.norm:2:25: error: limit is 0.9 [C25]\n"
            "    renorm moment(limit = 0.9)\n"
            "                          ^~~\n"
            "  hint: use 1 or more\n");
}

// Returns the errors for a warmup of this number of steps.
Texts ofWarmup(const std::string& steps) {
  return brief(
      norm({"reduce rows", kState, "divide_by running", "backward frozen", "warmup steps = " + steps}));
}

TEST(Check, C26_CountsAreWholeNumbers) {
  EXPECT_EQ(errorsOf(norm({"reduce features(groups = 2.5)"})),
            "t.norm:2:28: error: '2.5' is no whole number [C26]\n"
            "    reduce features(groups = 2.5)\n"
            "                             ^~~\n"
            "  hint: use a whole number of at most 2^53\n");
  for (const char* steps : {"1.5", "-1", "1e17"})
    EXPECT_EQ(ofWarmup(steps), Texts{std::string("steps is ") + steps + " [C26]"});
  EXPECT_EQ(brief("norm n from mabn {\n  renorm moment(start = 0.5)\n}\n"), Texts{"start is 0.5 [C26]"});
  EXPECT_EQ(brief(norm({"reduce rows", kState, "divide_by window(1.5)", "backward frozen"})),
            Texts{"'1.5' is no whole number [C26]"});
  for (const std::string groups : {"1e300", "18446744073709551616"})
    EXPECT_EQ(brief(norm({"reduce features(groups = " + groups + ")"})),
              Texts{"'" + groups + "' is too large [C26]"});
}

TEST(Check, C26_AWholeNumberIsTheOneThatStandsThere) {
  EXPECT_EQ(errorsOf(norm({"reduce features(groups = 9007199254740993)"})),
            "t.norm:2:28: error: '9007199254740993' is a whole number that double precision rounds to "
            "another [C26]\n"
            "    reduce features(groups = 9007199254740993)\n"
            "                             ^~~~~~~~~~~~~~~~\n"
            "  hint: use a whole number of at most 2^53\n");
  EXPECT_EQ(ofWarmup("9007199254740993"),
            Texts{"'9007199254740993' is a whole number that double precision rounds to another [C26]"});
  EXPECT_EQ(brief(norm({"reduce features(groups = 9223372036854775807)"})),
            Texts{"'9223372036854775807' is a whole number that double precision rounds to another [C26]"});
  EXPECT_EQ(specOf(norm({"reduce features(groups = 9007199254740992)"})).groups.count, int64_t(1) << 53);
  const std::string rounded = "' is a whole number that double precision rounds to another [C26]";
  for (const std::string number : {"12345678901234567891", "-12345678901234567891", "+0018446744073709551617",
                                   "100000000000000000000000"}) {
    EXPECT_EQ(brief(norm({"reduce features", "affine scale(offset = " + number + ")"})),
              Texts{"'" + number + rounded});
  }
  EXPECT_EQ(brief(norm({"reduce features", "epsilon 12345678901234567891"})),
            Texts{"'12345678901234567891" + rounded});
  for (const char* number : {"12345678901234567168", "-18446744073709551616", "+007", "000", "1e23", "-0"})
    EXPECT_EQ(brief(norm({"reduce features", std::string("affine scale(offset = ") + number + ")"})),
              Texts{});
}

TEST(Check, ValuesInMemoryAreFinite) {
  Spec spec = specOf("norm n from power_norm {\n}\n");
  spec.epsilon = std::numeric_limits<double>::infinity();
  spec.running->decay = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(text(checkSpec(spec)),
            "error: decay is nan [C22]\n  hint: use a value from 0 to below 1: the weight of the old value\n"
            "error: epsilon is inf [C23]\n  hint: use a value above 0, e.g. 1e-5\n");
}

TEST(Check, RandomSpecsAreLegal) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    EXPECT_EQ(text(checkSpec(randomSpec(seed))), "") << "seed " << seed;
    EXPECT_EQ(text(checkSpec(randomQuantizedSpec(seed))), "") << "seed " << seed;
    EXPECT_EQ(text(checkSpec(randomRopeSpec(seed))), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace normc
