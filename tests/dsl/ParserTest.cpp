// Syntax errors: where they point, what they say, and that one run reports them all.
#include <gtest/gtest.h>

#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(Parser, ReadsTheTextOfTheDesign) {
  const Spec spec = specOf(
      "// Power Normalization.\n"
      "norm power_norm {\n"
      "  reduce    rows                       // one statistic per feature\n"
      "  center    none\n"
      "  moment    raw\n"
      "  divide_by running\n"
      "  running   decay = 0.8, init = 2\n"
      "  backward  approximate(decay = 0.7)   // nu\n"
      "  affine    scale, bias\n"
      "  epsilon   1e-4\n"
      "}\n");
  Spec want;
  want.name = "power_norm";
  want.reduce = Reduce::Rows;
  want.divideBy = DivideBy::Running;
  want.running = Spec::Running{0.8, 2, false};
  want.backward = Backward::Approximate;
  want.approximate.decay = 0.7;
  want.scale = want.bias = true;
  want.epsilon = 1e-4;
  EXPECT_TRUE(spec == want);
}

TEST(Parser, ReadsEveryOption) {
  const Spec spec = specOf(norm(
      {"reduce rows", "divide_by window(8, geometric)", "running init = 0.5", "epsilon 1e-3 (mode = outside)",
       "backward approximate(nu = average, decay = 0.5)", "renorm moment(forward = no, limit = 2, start = 7)",
       "warmup steps = 20", "pre group_scaling(epsilon = 0.1, groups = heads)", "affine bias",
       "padding leave_out_of_statistics"}));
  Spec want;
  want.name = "n";
  want.reduce = Reduce::Rows;
  want.divideBy = DivideBy::Window;
  want.window = {8, WindowMean::Geometric};
  want.running = Spec::Running{0.9, 0.5, false};
  want.epsilon = 1e-3;
  want.epsilonMode = EpsilonMode::Outside;
  want.backward = Backward::Approximate;
  want.approximate = {Nu::Average, 0.5, BackwardScale::Forward, std::nullopt};
  want.renorm = {Renorm::Moment, 2, 0, 7, false};
  want.warmup = Spec::Warmup{20, Accumulate::Decay};
  want.pre = Spec::Pre{{1, "heads"}, 0.1};
  want.bias = true;
  want.padding = Padding::LeaveOutOfStatistics;
  EXPECT_TRUE(spec == want);
}

TEST(Parser, ReadsTheOffsetOfAScale) {
  const Spec spec = specOf(norm({"reduce features", "affine scale(offset = -0.5), bias"}));
  EXPECT_TRUE(spec.scale && spec.bias);
  EXPECT_EQ(spec.scaleOffset, -0.5);
  EXPECT_EQ(specOf(norm({"reduce features", "affine bias, scale(offset = 1)"})).scaleOffset, 1);
  EXPECT_TRUE(specOf(norm({"reduce features", "affine scale(offset = 0)"})) ==
              specOf(norm({"reduce features", "affine scale"})));
  const std::string base = "norm m {\n  reduce features\n  affine scale(offset = 1)\n}\n";
  EXPECT_EQ(specOf(base + "norm n from m {\n  affine scale\n}\n").scaleOffset, std::nullopt);
  EXPECT_EQ(specOf(base + "norm n from m {\n  epsilon 1\n}\n").scaleOffset, 1);
}

TEST(Parser, ReadsEveryActivation) {
  const std::pair<const char*, Activation> all[] = {
      {"none", Activation::None}, {"relu", Activation::Relu},          {"silu", Activation::Silu},
      {"gelu", Activation::Gelu}, {"gelu_tanh", Activation::GeluTanh}, {"sigmoid", Activation::Sigmoid},
      {"tanh", Activation::Tanh}};
  for (const auto& [word, value] : all)
    EXPECT_EQ(specOf(norm({"reduce rows", std::string("activation ") + word})).activation, value) << word;
  EXPECT_EQ(specOf(norm({"reduce rows"})).activation, Activation::None);
  EXPECT_EQ(errorsOf(norm({"reduce rows", "activation tan"})),
            "t.norm:3:14: error: expected none, relu, silu, gelu, gelu_tanh, sigmoid or tanh, found 'tan'\n"
            "    activation tan\n"
            "               ^~~\n"
            "  hint: did you mean 'tanh'?\n");
  const std::string base = "norm m {\n  reduce features\n  activation relu\n}\n";
  EXPECT_EQ(specOf(base + "norm n from m {\n  epsilon 1\n}\n").activation, Activation::Relu);
  EXPECT_EQ(specOf(base + "norm n from m {\n  activation none\n}\n").activation, Activation::None);
}

TEST(Parser, ReadsEveryResidual) {
  using Residual = Spec::Residual;
  const std::pair<const char*, std::optional<Residual>> all[] = {
      {"none", std::nullopt},
      {"before", Residual{.side = Side::Before, .stream = true}},
      {"before(stream = yes)", Residual{.side = Side::Before, .stream = true}},
      {"before(stream = no)", Residual{.side = Side::Before, .stream = false}},
      {"after", Residual{.side = Side::After, .stream = true}}};
  for (const auto& [text, value] : all)
    EXPECT_EQ(specOf(norm({"reduce rows", std::string("residual ") + text})).residual, value) << text;
  EXPECT_EQ(specOf(norm({"reduce rows"})).residual, std::nullopt);
  const std::string base = "norm m {\n  reduce features\n  residual before(stream = no)\n}\n";
  EXPECT_EQ(specOf(base + "norm n from m {\n  epsilon 1\n}\n").residual, (Residual{Side::Before, false}));
  EXPECT_EQ(specOf(base + "norm n from m {\n  residual before\n}\n").residual,
            (Residual{Side::Before, true}));
  EXPECT_EQ(specOf(base + "norm n from m {\n  residual none\n}\n").residual, std::nullopt);
  EXPECT_EQ(errorsOf(norm({"reduce rows", "residual none(stream = no)"})),
            "t.norm:3:17: error: 'residual none' has no option 'stream' [C5]\n"
            "    residual none(stream = no)\n"
            "                  ^~~~~~\n"
            "  hint: it has none\n");
}

TEST(Parser, ReadsEveryGate) {
  const std::pair<const char*, Activation> functions[] = {{"silu", Activation::Silu},
                                                          {"sigmoid", Activation::Sigmoid},
                                                          {"tanh", Activation::Tanh},
                                                          {"gelu", Activation::Gelu},
                                                          {"identity", Activation::None}};
  const std::pair<const char*, Per> pers[] = {
      {"row", Per::Row}, {"segment", Per::Segment}, {"feature", Per::Feature}};
  for (const auto& [word, function] : functions) {
    EXPECT_EQ(specOf(norm({"reduce rows", std::string("gate ") + word})).gate,
              (Spec::Gate{.function = function, .side = Side::After, .per = Per::Row}));
    for (const auto& [perWord, per] : pers)
      for (const auto& [sideWord, side] : {std::pair{"after", Side::After}, {"before", Side::Before}}) {
        const std::string text =
            std::string("gate ") + word + "(per = " + perWord + ", at = " + sideWord + ")";
        EXPECT_EQ(specOf(norm({"reduce rows", text})).gate, (Spec::Gate{function, side, per})) << text;
      }
  }
  const std::string base = "norm m {\n  reduce features\n  gate silu(at = before)\n}\n";
  EXPECT_EQ(specOf(base + "norm n from m {\n  gate tanh\n}\n").gate,
            (Spec::Gate{Activation::Tanh, Side::After}));
  EXPECT_EQ(specOf(base + "norm n from m {\n  gate none\n}\n").gate, std::nullopt);
  EXPECT_EQ(errorsOf(norm({"reduce rows", "gate silu(at = between)"})),
            "t.norm:3:18: error: expected after or before, found 'between'\n"
            "    gate silu(at = between)\n"
            "                   ^~~~~~~\n");
}

TEST(Parser, ReadsEveryModulation) {
  using Modulate = Spec::Modulate;
  const std::pair<const char*, std::optional<Modulate>> all[] = {
      {"none", std::nullopt},
      {"scale, shift", Modulate{.scale = true, .shift = true}},
      {"shift, scale", Modulate{.scale = true, .shift = true}},
      {"shift", Modulate{.shift = true}},
      {"scale(offset = 1)", Modulate{.scale = true}},
      {"scale(offset = 0), shift", Modulate{.scale = true, .shift = true, .offset = 0}},
      {"per = row, shift", Modulate{.shift = true, .per = Per::Row}},
      {"scale(offset = -2), per = segment", Modulate{.scale = true, .offset = -2}}};
  for (const auto& [text, value] : all)
    EXPECT_EQ(specOf(norm({"reduce rows", std::string("modulate ") + text})).modulate, value) << text;
  const std::string base = "norm m {\n  reduce features\n  modulate scale(offset = 0), per = row\n}\n";
  EXPECT_EQ(specOf(base + "norm n from m {\n  modulate scale\n}\n").modulate, Modulate{.scale = true});
  EXPECT_EQ(specOf(base + "norm n from m {\n  modulate none\n}\n").modulate, std::nullopt);
  EXPECT_EQ(errorsOf(norm({"reduce rows", "modulate"})),
            "t.norm:3:3: error: 'modulate' needs a value\n"
            "    modulate\n"
            "    ^~~~~~~~\n"
            "  hint: write one behind it: scale, shift or none\n");
}

TEST(Parser, ReadsEveryQuantize) {
  using Quantize = Spec::Quantize;
  const std::pair<const char*, std::optional<Quantize>> all[] = {
      {"none", std::nullopt},
      {"int8", Quantize{}},
      {"e4m3", Quantize{.codes = Codes::E4M3}},
      {"int8(per = tensor)", Quantize{.per = QuantizePer::Tensor}},
      {"int8(per = row, floor = 1e-4)", Quantize{.floor = 1e-4}},
      {"e4m3(size = 32, per = block, scale = power_of_two)",
       Quantize{.codes = Codes::E4M3, .per = QuantizePer::Block, .size = 32, .powerOfTwo = true}},
      {"int8(per = block, scale = float)", Quantize{.per = QuantizePer::Block}}};
  for (const auto& [text, value] : all)
    EXPECT_EQ(specOf(norm({"reduce rows", std::string("quantize ") + text})).quantize, value) << text;
  const std::string base = "norm m {\n  reduce features\n  quantize e4m3(per = tensor)\n}\n";
  EXPECT_EQ(specOf(base + "norm n from m {\n  quantize int8\n}\n").quantize, Quantize{});
  EXPECT_EQ(specOf(base + "norm n from m {\n  quantize none\n}\n").quantize, std::nullopt);
  EXPECT_EQ(errorsOf(norm({"reduce rows", "quantize"})),
            "t.norm:3:3: error: 'quantize' needs a value\n"
            "    quantize\n"
            "    ^~~~~~~~\n"
            "  hint: write one behind it: none, int8 or e4m3\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "quantize none(per = row)"})),
            "t.norm:3:17: error: 'quantize none' has no option 'per' [C5]\n"
            "    quantize none(per = row)\n"
            "                  ^~~\n"
            "  hint: it has none\n");
}

TEST(Parser, PointsAtAnOffsetWithoutScale) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "affine bias(offset = 1)"})),
            "t.norm:3:15: error: 'bias' has no option 'offset' [C28]\n"
            "    affine bias(offset = 1)\n"
            "                ^~~~~~\n"
            "  hint: the offset is of the scale: 'affine scale(offset = 1)'\n");
  EXPECT_EQ(brief(norm({"reduce features", "affine scale, bias(1)"})),
            Texts{"'bias' has no option '1' [C28]"});
  EXPECT_EQ(errorsOf(norm({"reduce features", "affine scale(1), bias"})),
            "t.norm:3:16: error: 'affine scale' has no option '1'\n"
            "    affine scale(1), bias\n"
            "                 ^\n"
            "  hint: write 'offset = 1'\n");
  EXPECT_EQ(errorsOf(norm({"reduce features", "affine scale(offset = 1), scale(offset = 2)"})),
            "t.norm:3:29: error: the option 'scale' is given twice [C2]\n"
            "    affine scale(offset = 1), scale(offset = 2)\n"
            "                              ^~~~~\n"
            "  hint: leave one of them out\n");
}

TEST(Parser, ReportsEveryErrorOfAFileInOneRun) {
  EXPECT_EQ(errorsOf("norm a {\n"
                     "  reduce columns\n"
                     "  centre current\n"
                     "  epsilon 1e-5x\n"
                     "}\n"
                     "\n"
                     "norm b from batch_nrom {\n"
                     "}\n"
                     "\n"
                     "norm c {\n"
                     "  reduce rows\n"
                     "  center running\n"
                     "  running decay 0.9\n"
                     "}\n"
                     "\n"
                     "norm d {\n"
                     "  reduce features\n"
                     "  divide_by running\n"
                     "  epsilon 0\n"
                     "}\n"),
            "t.norm:2:10: error: expected rows, features, segment or segment_features, found 'columns'\n"
            "    reduce columns\n"
            "           ^~~~~~~\n"
            "t.norm:3:3: error: unknown clause 'centre'\n"
            "    centre current\n"
            "    ^~~~~~\n"
            "  hint: did you mean 'center'?\n"
            "t.norm:4:11: error: '1e-5x' is not a number\n"
            "    epsilon 1e-5x\n"
            "            ^~~~~\n"
            "  hint: write it like 16, 0.9 or 1e-5\n"
            "t.norm:7:13: error: there is no norm 'batch_nrom' [C4]\n"
            "  norm b from batch_nrom {\n"
            "              ^~~~~~~~~~\n"
            "  hint: did you mean 'batch_norm'?\n"
            "t.norm:13:17: error: expected ',' or the end of the line, found '0.9'\n"
            "    running decay 0.9\n"
            "                  ^~~\n"
            "  hint: each clause stands on a line of its own\n"
            "t.norm:18:13: error: 'divide_by running' needs 'reduce rows', but reduce is 'features' [C6]\n"
            "    divide_by running\n"
            "              ^~~~~~~\n"
            "  hint: use 'reduce rows', or 'divide_by current'\n");
}

TEST(Parser, SaysWhatBelongsBetweenNorms) {
  EXPECT_EQ(errorsOf("reduce rows\nnorm a {\n  reduce rows\n}\n"),
            "t.norm:1:1: error: expected 'norm', found 'reduce'\n"
            "  reduce rows\n"
            "  ^~~~~~\n"
            "  hint: a file is a list of 'norm NAME { ... }'\n");
}

TEST(Parser, NormsNeedAName) {
  EXPECT_EQ(errorsOf("norm {\n  reduce rows\n}\n"),
            "t.norm:1:6: error: expected the name of a norm, found '{'\n"
            "  norm {\n"
            "       ^\n"
            "  hint: write 'norm NAME { ... }' or 'norm NAME from BASE { ... }'\n");
  EXPECT_EQ(errorsOf("norm a from {\n}\n"),
            "t.norm:1:13: error: expected the name of the base after 'from', found '{'\n"
            "  norm a from {\n"
            "              ^\n"
            "  hint: write 'norm NAME { ... }' or 'norm NAME from BASE { ... }'\n");
  EXPECT_EQ(errorsOf("norm a\n"),
            "t.norm:2:1: error: expected '{', found the end of the file\n"
            "  hint: write 'norm NAME { ... }' or 'norm NAME from BASE { ... }'\n");
}

TEST(Parser, FindsTheNormThatIsNotClosed) {
  EXPECT_EQ(errorsOf("norm a {\n  reduce rows\nnorm b {\n  reduce cols\n}\n"),
            "t.norm:1:6: error: norm 'a' is not closed\n"
            "  norm a {\n"
            "       ^\n"
            "  hint: end it with '}'\n"
            "t.norm:4:10: error: expected rows, features, segment or segment_features, found 'cols'\n"
            "    reduce cols\n"
            "           ^~~~\n");
}

TEST(Parser, NamesTheClausesForAWordThatIsNone) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "frobnicate 3"})),
            "t.norm:3:3: error: unknown clause 'frobnicate'\n"
            "    frobnicate 3\n"
            "    ^~~~~~~~~~\n"
            "  hint: the clauses are reduce, center, moment, divide_by, running, backward, renorm, residual, "
            "gate, affine, "
            "modulate, rope, activation, quantize, epsilon, "
            "pre, warmup or padding; docs/language.md says what has none, and what to do instead\n");
}

TEST(Parser, SuggestsTheNearestWord) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "moment    centrall"})),
            "t.norm:3:13: error: expected raw, central or sum, found 'centrall'\n"
            "    moment    centrall\n"
            "              ^~~~~~~~\n"
            "  hint: did you mean 'central'?\n");
}

TEST(Parser, SuggestsTheNearestOption) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decya = 0.9"})),
            "t.norm:3:11: error: 'running' has no option 'decya'\n"
            "    running decya = 0.9\n"
            "            ^~~~~\n"
            "  hint: did you mean 'decay'?\n");
  EXPECT_EQ(errorsOf("norm n from batch_renorm {\n  renorm std(limit = 3)\n}\n"),
            "t.norm:2:14: error: 'renorm std' has no option 'limit' [C5]\n"
            "    renorm std(limit = 3)\n"
            "               ^~~~~\n"
            "  hint: its options are rmax, dmax or start\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows(groups = 4)"})),
            "t.norm:2:15: error: 'reduce rows' has no option 'groups' [C5]\n"
            "    reduce rows(groups = 4)\n"
            "                ^~~~~~\n"
            "  hint: it has none\n");
}

TEST(Parser, ClausesNeedTheirValue) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "center", "epsilon"})),
            "t.norm:3:3: error: 'center' needs a value\n"
            "    center\n"
            "    ^~~~~~\n"
            "  hint: write one behind it: none, current or running\n"
            "t.norm:4:3: error: 'epsilon' needs a value\n"
            "    epsilon\n"
            "    ^~~~~~~\n"
            "  hint: write one behind it: a number\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "affine"})),
            "t.norm:3:3: error: 'affine' needs a value\n"
            "    affine\n"
            "    ^~~~~~\n"
            "  hint: write one behind it: scale, bias or none\n");
}

TEST(Parser, RefusesASecondValue) {
  EXPECT_EQ(errorsOf(norm({"reduce rows, features"})),
            "t.norm:2:16: error: 'reduce' takes one value, but a second one follows\n"
            "    reduce rows, features\n"
            "                 ^~~~~~~~\n"
            "  hint: write one of them; one statistic over rows and features is 'segment_features'\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "activation relu, silu"})),
            "t.norm:3:20: error: 'activation' takes one value, but a second one follows\n"
            "    activation relu, silu\n"
            "                     ^~~~\n"
            "  hint: write one of them; what is left out is a kernel of its own\n");
  EXPECT_EQ(errorsOf(norm({"reduce features", "gate silu(at = before), per = segment"})),
            "t.norm:3:27: error: 'gate' takes one value, but a second one follows\n"
            "    gate silu(at = before), per = segment\n"
            "                            ^~~\n"
            "  hint: options go into parentheses\n");
}

TEST(Parser, PutsOptionsIntoParentheses) {
  EXPECT_EQ(errorsOf(norm({"reduce features groups = 4"})),
            "t.norm:2:19: error: expected ',' or the end of the line, found 'groups'\n"
            "    reduce features groups = 4\n"
            "                    ^~~~~~\n"
            "  hint: write 'features(groups = 4)'\n");
  const std::string several = "options go into parentheses";
  const std::pair<const char*, std::string> hints[] = {
      {"gate silu at = before", "write 'silu(at = before)'"},
      {"gate silu at before", "write 'silu(at = before)'"},
      {"epsilon 1e-5 mode = max", "write '1e-5(mode = max)'"},
      {"quantize int8 per token", "write 'int8(per = row)'"},
      {"quantize int8 per = block size = 64", several},
      {"gate silu(at = before) per = row", several},
      {"gate silu before", several},
      {"divide_by window 16", several},
  };
  for (const auto& [clause, hint] : hints)
    EXPECT_TRUE(errorsOf(norm({"reduce rows", clause})).ends_with("  hint: " + hint + "\n")) << clause;
  EXPECT_TRUE(errorsOf("norm n { reduce features groups = 4 }\n").ends_with("'features(groups = 4)'\n"));
}

TEST(Parser, PointsAtACommaBehindTheLastItem) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "affine scale,", "epsilon 1e-5"})),
            "t.norm:3:15: error: expected an item behind ',', found the clause 'epsilon'\n"
            "    affine scale,\n"
            "                ^\n"
            "  hint: leave the ',' at the end of the line out\n");
  EXPECT_EQ(errorsOf(norm({"reduce features", "affine scale,", "  bias", "epsilon 1e-5"})), "");
  EXPECT_EQ(brief(norm({"reduce features,", "center"})),
            Texts{"expected an item behind ',', found the clause 'center' []"});
}

TEST(Parser, RefusesValuesOfTheWrongKind) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "epsilon small"})),
            "t.norm:3:11: error: expected a number, found 'small'\n"
            "    epsilon small\n"
            "            ^~~~~\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "center 3"})),
            "t.norm:3:10: error: expected none, current or running, found '3'\n"
            "    center 3\n"
            "           ^\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "center mode = none"})),
            "t.norm:3:10: error: unexpected 'mode ='\n"
            "    center mode = none\n"
            "           ^~~~\n"
            "  hint: write the value without a name\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay"})),
            "t.norm:3:11: error: the option 'decay' needs a value\n"
            "    running decay\n"
            "            ^~~~~\n"
            "  hint: write 'decay = ...'\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "affine scale = 1"})),
            "t.norm:3:10: error: the option 'scale' takes no value\n"
            "    affine scale = 1\n"
            "           ^~~~~\n"
            "  hint: write 'scale' alone\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay = 0.9(x = 1)"})),
            "t.norm:3:23: error: an option has no options of its own\n"
            "    running decay = 0.9(x = 1)\n"
            "                        ^\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running 1 = 2"})),
            "t.norm:3:11: error: a number cannot be set: '1'\n"
            "    running 1 = 2\n"
            "            ^\n"
            "  hint: write 'option = value'\n");
}

TEST(Parser, ExplainsTheFormOfAWindow) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "divide_by window(arithmetic, 16)"})),
            "t.norm:3:32: error: unexpected '16' in 'window'\n"
            "    divide_by window(arithmetic, 16)\n"
            "                                 ^~\n"
            "  hint: write 'window(16, arithmetic)' or 'window(16, geometric)'\n");
}

TEST(Parser, ReadsTheWordsOfAClauseThatStandsTwice) {
  EXPECT_EQ(brief(norm({"reduce rows", "quantize fp8", "quantize int4"})),
            (Texts{"expected none, int8 or e4m3, found 'fp8' []",
                   "the clause 'quantize' appears twice in this norm [C2]",
                   "expected none, int8 or e4m3, found 'int4' []"}));
}

TEST(Parser, AsksForACommaBetweenItems) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "affine scale scale"})),
            "t.norm:3:16: error: expected ',' or the end of the line, found 'scale'\n"
            "    affine scale scale\n"
            "                 ^~~~~\n"
            "  hint: separate items by a comma\n");
  for (const char* clause :
       {"modulate scale shift", "running decay = 0.9 init = 1", "warmup steps = 4 accumulate = decay"})
    EXPECT_TRUE(errorsOf(norm({"reduce rows", clause})).ends_with("  hint: separate items by a comma\n"))
        << clause;
  EXPECT_TRUE(errorsOf(norm({"reduce rows", "affine scale epsilon 1"}))
                  .ends_with("  hint: each clause stands on a line of its own\n"));
}

TEST(Parser, PointsAtWhatDoesNotFollow) {
  EXPECT_EQ(errorsOf(norm({"reduce rows center none"})),
            "t.norm:2:15: error: expected ',' or the end of the line, found 'center'\n"
            "    reduce rows center none\n"
            "                ^~~~~~\n"
            "  hint: each clause stands on a line of its own\n");
  for (const char* clause : {"moment raw, center current", "moment raw, epsilon 1",
                             "affine scale, center none", "moment raw, center"})
    EXPECT_TRUE(errorsOf(norm({"reduce features", clause}))
                    .ends_with("  hint: each clause stands on a line of its own\n"))
        << clause;
  EXPECT_EQ(errorsOf(norm({"reduce features(groups = 4", "center none"})),
            "t.norm:3:3: error: expected ',' or ')', found 'center'\n"
            "    center none\n"
            "    ^~~~~~\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay =", "center none"})),
            "t.norm:3:17: error: nothing stands behind '='\n"
            "    running decay =\n"
            "                  ^\n"
            "  hint: write the value on the same line\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "(3)", "center none"})),
            "t.norm:3:3: error: expected a clause or '}', found '('\n"
            "    (3)\n"
            "    ^\n"
            "  hint: a clause starts with a word such as 'reduce'\n");
}

TEST(Parser, AValueOnTheNextLineIsPartOfTheErrorOfItsOption) {
  EXPECT_EQ(brief(norm({"reduce rows", "running decay =", "0.9, init = 2", "centre none"})),
            (Texts{"nothing stands behind '=' []", "unknown clause 'centre' []"}));
  EXPECT_EQ(brief(norm({"reduce rows", "warmup accumulate =", "decay"})),
            Texts{"nothing stands behind '=' []"});
  EXPECT_EQ(brief("norm a {\n  reduce rows\n  running decay =\nnorm b {\n  reduce rows\n}\n"),
            (Texts{"norm 'a' is not closed []", "nothing stands behind '=' []"}));
}

TEST(Parser, AClauseGoesOnAfterAComma) {
  EXPECT_EQ(specOf(norm({"reduce rows", "affine scale,", "bias"})).bias, true);
  EXPECT_EQ(specOf(norm({"reduce features(", "groups = 4", ")", "affine scale"})).groups.count, 4);
}

TEST(Parser, RefusesWhatIsNoFileOfNorms) {  // C27
  EXPECT_EQ(errorsOf(std::string(300000, '\n')),
            "t.norm: error: the file has more than 262144 bytes [C27]\n"
            "  hint: is this a file of norms? One has about ten short lines each\n");
  EXPECT_EQ(errorsOf("norm n {\n//" + std::string(499, '-') + "\n  reduce rows\n}\n"),
            "t.norm:2:1: error: this line has 501 bytes; at most 500 are read [C27]\n"
            "  //" +
                std::string(118, '-') +
                "...\n"
                "  ^\n"
                "  hint: is this a file of norms? One has about ten short lines each\n");
  EXPECT_EQ(errorsOf("norm n {\n//" + std::string(498, '-') + "\n  reduce rows\n}"), "");
}

TEST(Parser, TheEndOfALineCountsTowardsNoLimit) {  // C27
  const std::string longest = "//" + std::string(498, '-');
  EXPECT_EQ(errorsOf("norm n {\r\n" + longest + "\r\n  reduce rows\r\n}\r\n"), "");
  EXPECT_NE(
      errorsOf("norm n {\r\n" + longest + "-\r\n  reduce rows\r\n}\r\n").find("this line has 501 bytes"),
      std::string::npos);
}

TEST(Parser, AFileHoldsANorm) {
  for (const char* text : {"", "\n", "// nothing\n", "\xef\xbb\xbf"})
    EXPECT_EQ(errorsOf(text),
              "t.norm: error: the file holds no norm\n"
              "  hint: a norm has the form: norm NAME { reduce rows ... }\n");
}

TEST(Parser, ALineThatBeginsWithACommaOrAnEqualsSignGoesOnWithNothing) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "running decay", "= 0.8"})),
            "t.norm:3:11: error: the option 'decay' needs a value\n"
            "    running decay\n"
            "            ^~~~~\n"
            "  hint: write 'decay = ...'\n"
            "t.norm:4:3: error: expected a clause or '}', found '='\n"
            "    = 0.8\n"
            "    ^\n"
            "  hint: a clause starts with a word such as 'reduce'\n");
  EXPECT_EQ(errorsOf(norm({"reduce rows", "affine scale", ", bias"})),
            "t.norm:4:3: error: expected a clause or '}', found ','\n"
            "    , bias\n"
            "    ^\n"
            "  hint: a clause starts with a word such as 'reduce'\n");
  EXPECT_EQ(specOf(norm({"reduce features(groups", "= 4)", "affine scale"})).groups.count, 4);
}

TEST(Parser, ShowsTheFirstHundredErrorsOfAFile) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += "norm {}\n";
  const auto specs = readNorms(text, "t.norm");
  ASSERT_FALSE(specs);
  ASSERT_EQ(specs.errors().size(), 101u);
  EXPECT_EQ(specs.errors().back().text(), "t.norm: error: there are 50 more errors\n");
}

}  // namespace
}  // namespace normc
