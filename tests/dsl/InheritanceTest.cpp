// `from`: what a norm takes from its base, and where errors of an heir point.
#include <gtest/gtest.h>

#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(Inheritance, ClausesReplaceThoseOfTheBase) {
  Spec want = specOf("norm n from power_norm_released {\n}\n");
  want.epsilon = 1e-3;
  want.approximate = {};
  EXPECT_TRUE(specOf("norm n from power_norm_released {\n  epsilon 1e-3\n  backward approximate\n}\n") ==
              want);
}

TEST(Inheritance, NoneTakesAClauseAway) {
  const Spec spec = specOf(
      "norm n from power_norm_released {\n"
      "  pre none\n  warmup none\n  running none\n  divide_by current\n  backward exact\n  affine none\n"
      "  padding exclude\n"
      "}\n");
  EXPECT_FALSE(spec.pre || spec.warmup || spec.running || spec.scale || spec.bias);
  EXPECT_EQ(specOf("norm n from mabn {\n  renorm none\n}\n").renorm, Spec::Renormalize{});
}

TEST(Inheritance, TheBaseMayStandLaterInTheFile) {
  const auto specs =
      readNorms("norm b from a {\n  epsilon 0.5\n}\nnorm a {\n  reduce segment\n}\n", "t.norm");
  ASSERT_TRUE(specs);
  ASSERT_EQ(specs->size(), 2u);
  EXPECT_EQ((*specs)[0]->name, "b");
  EXPECT_EQ((*specs)[0]->reduce, Reduce::Segment);
  EXPECT_EQ((*specs)[1]->name, "a");
}

TEST(Inheritance, ANormOfTheFileComesBeforeABuiltInOne) {
  EXPECT_EQ(specOf("norm layer_norm {\n  reduce segment\n}\nnorm n from layer_norm {\n}\n").reduce,
            Reduce::Segment);
}

TEST(Inheritance, ABrokenRuleOfAnInheritedFlagPointsAtTheHeir) {
  EXPECT_EQ(errorsOf("norm n from power_norm {\n  reduce features\n  running none\n  backward exact\n}\n"),
            "t.norm:1:6: error: 'divide_by running' needs 'reduce rows', but reduce is 'features' [C6]\n"
            "  norm n from power_norm {\n"
            "       ^\n"
            "  hint: use 'reduce rows', or 'divide_by current'\n");
}

TEST(Inheritance, AnHeirOfABrokenNormAddsNoErrorsOfItsOwn) {
  EXPECT_EQ(errorsOf("norm a {\n  reduce cols\n}\nnorm b from a {\n  center running\n}\n"),
            "t.norm:2:10: error: expected rows, features, segment or segment_features, found 'cols'\n"
            "    reduce cols\n"
            "           ^~~~\n");
}

}  // namespace
}  // namespace normc
