// Rule P8 for an epsilon that is added to a root, over all kinds of statistics, layouts and types.
#include <gtest/gtest.h>

#include "dsl/Library.h"
#include "dsl/Problem.h"

namespace normc {
namespace {

TEST(ProblemErrors, P8_AnEpsilonBesideARootIsNotLostInIt) {
  const auto errors = [](const std::string& clauses, const std::string& epsilon, const std::string& problem) {
    const std::string text = "norm n {\n  epsilon " + epsilon + " (mode = outside)\n" + clauses + "}\n";
    const auto specs = readNorms(text, "t.norm");
    if (!specs) return normc::text(specs.errors());
    const auto read = parseProblem("n:backward@" + problem, [&](std::string_view) { return specs->front(); });
    return read ? "" : normc::text(read.errors());
  };
  const std::string centred = "  center current\n  moment central\n";
  for (const std::string& clauses :
       {"  reduce features\n" + centred, std::string("  reduce rows\n"), "  reduce rows\n" + centred,
        "  reduce segment\n" + centred, std::string("  reduce segment_features(groups = 2)\n"),
        std::string("  reduce rows\n  running decay = 0.9\n  backward frozen\n")}) {
    for (const std::string rest : {"[*x*x64]", "[*x*x64]{mask}", "[*x64x*]{layout=channels_first}"}) {
      for (const std::string type : {"f32", "bf16", "f16"}) {
        EXPECT_EQ(
            errors(clauses, "1e-12", type + rest),
            "error: epsilon of 'n' is 1e-12 in mode 'outside', beside roots of f32, whose squares are no "
            "normal numbers below 1e-19 [P8]\n"
            "  n:backward@" +
                type + rest +
                "\n  ^\n"
                "  hint: data of f32, bf16 and f16 has statistics in f32: use 1e-11 or more, mode 'add', "
                "or data of f64\n");
        EXPECT_EQ(errors(clauses, "1e-11", type + rest), "");
      }
      EXPECT_EQ(errors(clauses, "1e-12", "f64" + rest), "");
    }
  }
  // Only the state divides: its root is a number that is given.
  EXPECT_EQ(errors("  reduce rows\n  divide_by running\n  running decay = 0.9\n", "0", "f32[*x64]"), "");
}

}  // namespace
}  // namespace normc
