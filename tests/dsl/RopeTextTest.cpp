// The text of `rope`: what it says, which norms have it (C34), and which problems (P5, P14).
#include "dsl/Check.h"
#include "dsl/Problem.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

using Rope = Spec::Rope;

TEST(RopeText, ReadsEveryValue) {
  const std::pair<const char*, std::optional<Rope>> all[] = {
      {"none", std::nullopt},
      {"half", Rope{}},
      {"interleaved", Rope{.pairs = Pairs::Interleaved}},
      {"half(groups = heads)", Rope{.groups = {1, "heads"}}},
      {"half(groups = 1, features = all)", Rope{}},
      {"interleaved(features = 64, groups = 8)",
       Rope{.pairs = Pairs::Interleaved, .groups = {8, ""}, .features = 64}}};
  for (const auto& [text, value] : all)
    EXPECT_EQ(specOf(norm({"reduce features", std::string("rope ") + text})).rope, value) << text;
  const std::string base = "norm m {\n  reduce features\n  rope half(groups = 4, features = 2)\n}\n";
  EXPECT_EQ(specOf(base + "norm n from m {\n  rope interleaved\n}\n").rope,
            Rope{.pairs = Pairs::Interleaved});
  EXPECT_EQ(specOf(base + "norm n from m {\n  rope none\n}\n").rope, std::nullopt);
  EXPECT_EQ(errorsOf(norm({"reduce features", "rope"})),
            "t.norm:3:3: error: 'rope' needs a value\n"
            "    rope\n"
            "    ^~~~\n"
            "  hint: write one behind it: none, half or interleaved\n");
  EXPECT_EQ(errorsOf(norm({"reduce features", "rope none(groups = 2)"})),
            "t.norm:3:13: error: 'rope none' has no option 'groups' [C5]\n"
            "    rope none(groups = 2)\n"
            "              ^~~~~~\n"
            "  hint: it has none\n");
  EXPECT_EQ(errorsOf(norm({"reduce features", "rope half(features = some)"})),
            "t.norm:3:24: error: expected all or a number, found 'some'\n"
            "    rope half(features = some)\n"
            "                         ^~~~\n"
            "  hint: write 'features = 64' for the first 64 of each group, or leave it out for all\n");
}

TEST(RopeText, MixesWithEveryReductionAndNeighbour) {
  for (const char* base : {"power_norm_released", "layer_norm", "instance_norm", "mabn", "resnet_tail",
                           "adaptive_layer_norm_zero", "delta_gated_rms_norm", "rms_norm_residual_int8"})
    for (const char* rope : {"half", "interleaved(groups = heads)", "half(features = 2)"})
      EXPECT_EQ(errorsOf(std::string("norm n from ") + base + " {\n  rope " + rope + "\n}\n"), "");
}

TEST(RopeText, C34_TurnsAnEvenNumberOfFeatures) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "rope half(features = 3)"})),
            "t.norm:3:24: error: features is 3 [C34]\n"
            "    rope half(features = 3)\n"
            "                         ^\n"
            "  hint: use an even number of 2 or more: 'rope' turns pairs\n");
  for (const char* features : {"0", "-2", "1"})
    EXPECT_EQ(brief(norm({"reduce features", std::string("rope half(features = ") + features + ")"})),
              Texts{std::string("features is ") + features + " [C34]"});
  EXPECT_EQ(brief(norm({"reduce features", "rope half(features = 2)"})), Texts{});
  EXPECT_EQ(brief(norm({"reduce features", "rope half(features = 2.5)"})),
            Texts{"'2.5' is no whole number [C26]"});
  Spec spec = specOf(norm({"reduce features", "rope half"}));
  EXPECT_EQ(text(checkSpec(spec)), "");
  spec.rope->features = 5;
  EXPECT_EQ(text(checkSpec(spec)),
            "error: features is 5 [C34]\n  hint: use an even number of 2 or more: 'rope' turns pairs\n");
}

TEST(RopeText, C21_HasOneGroupOrMore) {
  EXPECT_EQ(errorsOf(norm({"reduce features", "rope half(groups = 0)"})),
            "t.norm:3:22: error: groups is 0 [C21]\n"
            "    rope half(groups = 0)\n"
            "                       ^\n"
            "  hint: use 1 or more, or the name of a binding\n");
  EXPECT_EQ(brief(norm({"reduce features", "rope half(groups = mask)"})),
            Texts{"a binding cannot be called 'mask' [C21]"});
}

// The errors of a problem of a norm with these clauses.
std::string errorsOfProblem(const Texts& clauses, const std::string& rest) {
  const Spec spec = specOf(norm(clauses));
  const auto problem = parseProblem("n" + rest, [&](std::string_view) -> Result<std::shared_ptr<const Spec>> {
    return std::make_shared<const Spec>(spec);
  });
  return problem ? "" : text(problem.errors());
}

TEST(RopeProblem, ItsGroupsAreABinding) {
  EXPECT_EQ(bindingNames(specOf(norm({"reduce features", "rope half(groups = heads)"}))),
            std::vector<std::string>{"heads"});
  EXPECT_EQ(bindingNames(**findNorm("qk_norm_rope")), std::vector<std::string>{"heads"});
  EXPECT_EQ(errorsOfProblem({"reduce features", "rope half(groups = heads)"}, ":forward@f32[*x64]"),
            "error: 'n' needs the number of its groups 'heads' [P4]\n"
            "  n:forward@f32[*x64]\n"
            "  ^\n"
            "  hint: add it in braces, e.g. {heads=8}\n");
}

TEST(RopeProblem, CountsItsPairs) {
  const auto pairs = [](const std::string& rope, int64_t features) {
    Problem problem{.spec = std::make_shared<const Spec>(specOf(norm({"reduce features", rope})))};
    problem.bindings["heads"] = 4;
    return problem.pairs(features);
  };
  EXPECT_EQ(pairs("rope none", 64), 0);
  EXPECT_EQ(pairs("rope half", 64), 32);
  EXPECT_EQ(pairs("rope interleaved(groups = heads)", 64), 8);
  EXPECT_EQ(pairs("rope half(groups = heads, features = 4)", 64), 2);
}

TEST(RopeProblem, P5_ItsGroupsDivideTheFeatures) {
  EXPECT_EQ(errorsOfProblem({"reduce features", "rope half(groups = heads)"}, ":forward@f32[*x64]{heads=6}"),
            "error: 64 features do not divide into 6 groups (rope of 'n') [P5]\n"
            "  n:forward@f32[*x64]{heads=6}\n"
            "                            ^\n"
            "  hint: the number of groups has to divide the number of features\n");
}

TEST(RopeProblem, P14_HasPairsInEachGroup) {
  const Texts clauses = {"reduce features", "rope half(groups = heads)"};
  EXPECT_EQ(errorsOfProblem(clauses, ":forward@f32[*x12]{heads=4}"),
            "error: a group of 'rope' of 'n' has 3 of 12 features, an odd number [P14]\n"
            "  n:forward@f32[*x12]{heads=4}\n"
            "                  ^~\n"
            "  hint: 'rope' turns pairs: use a multiple of 8 features\n");
  EXPECT_EQ(errorsOfProblem(clauses, ":forward@f32[*x16]{heads=4}"), "");
  EXPECT_EQ(errorsOfProblem(clauses, ":forward@f32[*x*]{heads=4}"), "");  // a call has to divide
}

TEST(RopeProblem, P14_HasTheFeaturesThatItTurns) {
  const Texts clauses = {"reduce features", "rope half(groups = heads, features = 32)"};
  EXPECT_EQ(errorsOfProblem(clauses, ":forward@f32[*x64]{heads=4}"),
            "error: a group of 'rope' of 'n' has 16 of 64 features, fewer than the 32 that it turns "
            "[P14]\n"
            "  n:forward@f32[*x64]{heads=4}\n"
            "                  ^~\n"
            "  hint: use more features, or fewer groups, or 'features = 16' of 'rope'\n");
  EXPECT_EQ(errorsOfProblem(clauses, ":forward@f32[*x128]{heads=4}"), "");
  EXPECT_EQ(errorsOfProblem(clauses, ":forward@f32[*x*]{heads=4}"),
            "error: 'rope' of 'n' turns 32 features of each group, and the number of features is open [P14]\n"
            "  n:forward@f32[*x*]{heads=4}\n"
            "                  ^\n"
            "  hint: write that number, e.g. [*x4096], or leave 'features' of 'rope' out: then all are "
            "turned\n");
}

TEST(RopeProblem, P14_ARowLiesTogether) {
  EXPECT_EQ(errorsOfProblem({"reduce features", "rope half"}, ":forward@f32[*x64x*]{layout=channels_first}"),
            "error: layout=channels_first does not go with the 'rope' of 'n' [P14]\n"
            "  n:forward@f32[*x64x*]{layout=channels_first}\n"
            "                               ^~~~~~~~~~~~~~\n"
            "  hint: the features of a row must lie together: leave the layout out\n");
}

TEST(RopeProblem, P14_APairHasOneStatistic) {
  EXPECT_EQ(errorsOfProblem({"reduce features(groups = heads)", "rope half(groups = turns)"},
                            ":forward@f32[*x64]{heads=4,turns=2}"),
            "error: the number of groups of 'rope' of 'n' is 2, no multiple of the 4 of 'reduce' [P14]\n"
            "  n:forward@f32[*x64]{heads=4,turns=2}\n"
            "                                    ^\n"
            "  hint: both features of a pair belong to one group of 'reduce': use a multiple of 4\n");
  EXPECT_EQ(errorsOfProblem({"reduce segment_features(groups = heads)", "rope half"},
                            ":forward@f32[*x*x*]{heads=4}"),
            "error: the number of groups of 'rope' of 'n' is 1, no multiple of the 4 of 'reduce' [P14]\n"
            "  n:forward@f32[*x*x*]{heads=4}\n"
            "                             ^\n"
            "  hint: both features of a pair belong to one group of 'reduce': use a multiple of 4\n");
  EXPECT_EQ(errorsOfProblem({"reduce rows", "pre group_scaling(groups = 4)", "rope half(groups = 6)"},
                            ":forward@f32[*x*]"),
            "error: the number of groups of 'rope' of 'n' is 6, no multiple of the 4 of 'pre' [P14]\n"
            "  n:forward@f32[*x*]\n"
            "  ^\n"
            "  hint: both features of a pair belong to one group of 'pre': use a multiple of 4\n");
  EXPECT_EQ(errorsOfProblem({"reduce features(groups = 2)", "rope half(groups = 4)"}, ":forward@f32[*x64]"),
            "");
  for (const char* reduce : {"reduce rows", "reduce segment"})
    EXPECT_EQ(errorsOfProblem({reduce, "rope half(groups = 6)"}, ":forward@f32[*x*x60]"), "") << reduce;
}

TEST(RopeProblem, OfRandomSpecsIsLegal) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Problem problem{.spec = std::make_shared<const Spec>(randomRopeSpec(seed))};
    problem.segmented = true;
    problem.features = 16;
    for (const std::string& binding : bindingNames(*problem.spec)) problem.bindings[binding] = 1 << seed % 3;
    const auto checked = checkProblem(problem);
    EXPECT_TRUE(checked) << "seed " << seed << "\n" << text(checked.errors());
  }
}

}  // namespace
}  // namespace normc
