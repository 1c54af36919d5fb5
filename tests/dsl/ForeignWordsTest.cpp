// Words of other frameworks and notations: where each has a hint, and that none hides a word of the language.
#include "dsl/EnumWords.h"
#include "dsl/ForeignSyntaxHints.h"
#include "dsl/ForeignWords.h"
#include "dsl/Problem.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

struct Case {
  const char* clause;
  std::string hint;
};

// Expects the hint of each clause, the only error of a norm over rows.
void expectHints(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    const auto specs = readNorms(norm({"reduce rows", each.clause}), "t.norm");
    ASSERT_FALSE(specs) << each.clause;
    ASSERT_EQ(specs.errors().size(), 1u) << each.clause;
    EXPECT_EQ(specs.errors()[0].hint, each.hint) << each.clause;
  }
}

TEST(ForeignWords, OfClauses) {
  const std::string reduce = "'reduce' says what one statistic is taken over";
  const std::string groups = "write 'reduce features(groups = 4)'";
  expectHints({
      {"scale", "write 'affine scale'"},
      {"bias yes", "write 'affine bias'"},
      {"mean current", "write 'center current', or 'center none'"},
      {"decay 0.9", "write 'running decay = 0.9'"},
      {"groups 4", groups},
      {"heads 4", groups},
      {"axis 1", reduce},
      {"dim 1", reduce},
      {"mask", "a mask belongs to the problem: layer_norm:forward@f32[*x1024]{mask}"},
      {"dtype f32", "a type belongs to the problem: layer_norm:forward@bf16[*x1024]"},
  });
}

TEST(ForeignWords, OfValues) {
  const std::string side = "write 'before' or 'after'";
  const std::string padding =
      "to let padded rows count in everything, leave the mask out of the problem; 'leave_out_of_statistics' "
      "transforms them without counting them";
  expectHints({
      {"moment std", "write 'central'"},
      {"moment centered", "write 'central'"},
      {"center mean", "write 'current'"},
      {"center yes", "write 'current'"},
      {"center zero", "write 'none'"},
      {"center no", "write 'none'"},
      {"divide_by std", "write 'current'"},
      {"backward none", "write 'frozen'"},
      {"backward detach", "write 'frozen'"},
      {"residual add", side},
      {"residual in", side},
      {"padding include", padding},
      {"padding none", padding},
      {"padding ignore", padding},
      {"padding mask", padding},
  });
}

TEST(ForeignWords, OfFunctionsThatTheLanguageLacks) {
  const std::string nothing =
      "no clause does that: docs/language.md lists what cannot be said, and what to do instead";
  for (const std::string function :
       {"relu6", "ReLU6", "relu2", "squared_relu", "relu_squared", "leaky_relu", "prelu", "elu", "selu",
        "celu", "softplus", "mish", "hardtanh", "hard_tanh", "hardswish", "hard_swish", "hardsigmoid",
        "hard_sigmoid", "quick_gelu"}) {
    EXPECT_EQ(hintFor(function, allOf(kActivationWords), ""), nothing) << function;
    EXPECT_EQ(hintFor(function, allOf(kGateWords), ""), nothing) << function;
  }
  expectHints({{"activation hard_swish", nothing}, {"gate elu", nothing}});
}

TEST(ForeignWords, AGatedActivationIsAGate) {
  expectHints({{"activation swiglu", "a gate is a tensor of its own: write 'gate silu(at = before)'"},
               {"activation GEGLU", "a gate is a tensor of its own: write 'gate gelu(at = before)'"}});
}

TEST(ForeignWords, OfReductions) {
  const std::vector<std::string> known = allOf(kReduceWords);
  for (const std::string word : {"layer", "token", "last"})
    EXPECT_EQ(hintFor(word, known, ""), "write 'features': one statistic per row") << word;
  EXPECT_EQ(hintFor("group", known, ""), "write 'reduce features(groups = 4)'");
  EXPECT_EQ(hintFor("instance", known, ""), "write 'segment': one statistic per segment and feature");
  EXPECT_EQ(hintFor("sample", known, ""), "write 'segment_features': one statistic per segment");
  EXPECT_EQ(hintFor("none", known, ""),
            "no clause does that: docs/language.md lists what cannot be said, and what to do instead");
}

TEST(ForeignWords, OfProblems) {
  const std::vector<std::string> entries = {"forward", "backward", "infer"};
  const std::vector<std::string> types = {"f32", "f64", "bf16", "f16"};
  const std::vector<std::string> layouts = {"features_last", "channels_first"};
  struct {
    const char* word;
    std::vector<std::string> known;
    const char* hint;
  } const cases[] = {
      {"fwd", entries, "write 'forward'"},
      {"bwd", entries, "write 'backward'"},
      {"inference", entries, "write 'infer'"},
      {"float", types, "write 'f32'"},
      {"float32", types, "write 'f32'"},
      {"double", types, "write 'f64'"},
      {"float64", types, "write 'f64'"},
      {"half", types, "write 'f16'"},
      {"float16", types, "write 'f16'"},
      {"bfloat16", types, "write 'bf16'"},
      {"channels_last", layouts, "write 'features_last', or leave the layout out: it is the default"},
      {"NHWC", layouts, "write 'features_last', or leave the layout out: it is the default"},
      {"nchw", layouts, "write 'channels_first', with the features in the middle: [*x64x*]"},
  };
  for (const auto& each : cases) EXPECT_EQ(hintFor(each.word, each.known, ""), each.hint) << each.word;
}

TEST(ForeignWords, OfOptionsThatOtherLayersHave) {
  const std::string factor =
      "write 'gate identity(at = before, per = feature)' beside it: the gate is the factor of x, so x is "
      "what "
      "is scaled, and the residual the other";
  const std::string nothing =
      "no clause does that: docs/language.md lists what cannot be said, and what to do instead";
  expectHints({
      {"residual before(alpha = 0.5)", factor},
      {"residual before(scale = 0.5)", factor},
      {"divide_by mean", "write 'current': the moment of this batch, which 'moment' names"},
      {"gate silu(per = group)", nothing},
      {"quantize int8(per = segment)", "write 'per = row', or 'per = tensor' for one scale of all rows"},
  });
  EXPECT_EQ(hintFor("partial", {"groups"}, ""), nothing);
  EXPECT_EQ(hintFor("partial", {"groups", "features"}, ""),
            "write 'features = 64' for the first 64 of each group");
}

TEST(ForeignWords, AProblemHasTheirHints) {
  const auto problem = parseProblem("batch_norm:fwd@float[*x64x*]{layout=channels_last}", findNorm);
  ASSERT_FALSE(problem);
  Texts hints;
  for (const Diagnostic& error : problem.errors()) hints.push_back(error.hint);
  EXPECT_EQ(hints, (Texts{"write 'forward'", "write 'f32'",
                          "write 'features_last', or leave the layout out: it is the default"}));
}

TEST(ForeignWords, HaveAHintAndAPlace) {
  for (const ForeignWord& each : foreignWords()) {
    EXPECT_NE(each.word, each.beside);
    EXPECT_FALSE(each.word.empty() || each.beside.empty() || each.hint.empty()) << each.word;
  }
}

}  // namespace
}  // namespace normc
