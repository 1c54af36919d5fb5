// Comments of a file stay where they were in its canonical text.
#include <gtest/gtest.h>

#include "dsl/Comments.h"
#include "dsl/Library.h"
#include "dsl/Print.h"

namespace normc {
namespace {

std::string canonical(const std::string& text) {
  auto norms = readNorms(text, "test.norm");
  if (!norms) return ADD_FAILURE() << normc::text(norms.errors()), "";
  std::string all;
  for (const auto& norm : *norms) all += (all.empty() ? "" : "\n") + print(*norm);
  return all;
}

/// Returns the canonical text with the comments, which must be the same once more.
std::string formatted(const std::string& text) {
  const std::string once = textWithComments(text, *readNorms(text, "test.norm"));
  EXPECT_EQ(canonical(once), canonical(text)) << once;
  EXPECT_EQ(textWithComments(once, *readNorms(once, "test.norm")), once);
  return once;
}

TEST(FormattedComments, StandWhereTheyStood) {
  EXPECT_EQ(formatted("// a licence\n"
                      "\n"
                      "// of the norm\n"
                      "norm a {  // behind its name\n"
                      "  epsilon 0.5  // behind epsilon\n"
                      "    // in front of reduce,\n"
                      "    // two lines\n"
                      "  reduce rows\n"
                      "  // at the end\n"
                      "}  // behind the end\n"
                      "// of the file\n"),
            "// a licence\n"
            "\n"
            "// of the norm\n"
            "norm a {  // behind its name\n"
            "  // in front of reduce,\n"
            "  // two lines\n"
            "  reduce    rows\n"
            "  epsilon   0.5  // behind epsilon\n"
            "  // at the end\n"
            "}  // behind the end\n"
            "// of the file\n");
}

TEST(FormattedComments, StandBehindAByteOrderMarkAsWithoutOne) {
  const std::string text = "// a licence\n\n// of the norm\nnorm a {\n  reduce    rows\n}\n";
  EXPECT_EQ(formatted("\xef\xbb\xbf" + text), text);
}

TEST(FormattedComments, KeepAClauseThatIsADefault) {
  EXPECT_EQ(formatted("norm a {\n"
                      "  reduce features\n"
                      "  center none\n"
                      "  moment raw  // behind a default\n"
                      "  // in front of a default\n"
                      "  backward exact\n"
                      "  epsilon 0.5\n"
                      "}\n"),
            "norm a {\n"
            "  reduce    features\n"
            "  moment    raw  // behind a default\n"
            "  // in front of a default\n"
            "  backward  exact\n"
            "  epsilon   0.5\n"
            "}\n");
}

TEST(FormattedComments, KeepEveryClauseThatIsADefault) {
  const std::string text =
      "norm a {\n"
      "  pre       none  // 1\n"
      "  reduce    rows  // 2\n"
      "  center    none  // 3\n"
      "  moment    raw  // 4\n"
      "  divide_by current  // 5\n"
      "  running   none  // 6\n"
      "  warmup    none  // 7\n"
      "  renorm    none  // 8\n"
      "  backward  exact  // 9\n"
      "  affine    none  // 10\n"
      "  modulate  none  // 11\n"
      "  rope      none  // 12\n"
      "  gate      none  // 13\n"
      "  residual  none  // 14\n"
      "  activation none  // 15\n"
      "  quantize  none  // 16\n"
      "  epsilon   1e-5  // 17\n"
      "  padding   exclude  // 18\n"
      "}\n";
  EXPECT_EQ(formatted(text), text);
}

TEST(FormattedComments, KeepTheClausesOfTheirNormAlone) {
  EXPECT_EQ(formatted("norm a {\n  reduce rows\n}\nnorm b from a {\n  moment raw  // of b\n}\n"),
            "norm a {\n  reduce    rows\n}\n\nnorm b {\n  reduce    rows\n  moment    raw  // of b\n}\n");
}

TEST(FormattedComments, GoOnToTheNextClauseWhereTheTextLacksTheirs) {
  EXPECT_EQ(
      withComments("norm a {\n  center none  // c\n  reduce rows\n}\n", "norm a {\n  reduce    rows\n}\n"),
      "norm a {\n  // c\n  reduce    rows\n}\n");
}

TEST(FormattedComments, OfSeveralNormsStayWithTheirs) {
  const std::string text =
      formatted("norm a { reduce rows }  // one\n// of b\nnorm b from a {\n  // in b\n  epsilon 2e-3\n}\n");
  EXPECT_LT(text.find("// one"), text.find("// of b"));
  EXPECT_LT(text.find("// of b"), text.find("norm b"));
  EXPECT_LT(text.find("norm b"), text.find("// in b"));
  EXPECT_LT(text.find("// in b"), text.find("epsilon   0.002"));
}

TEST(FormattedComments, BehindTheEndOfANormEndTheLinesInFrontOfIt) {
  EXPECT_EQ(formatted("norm a {\n"
                      "  reduce features\n"
                      "  // at the end\n"
                      "} // behind it\n"
                      "// of b\n"
                      "norm b {\n"
                      "  reduce rows\n"
                      "}\n"),
            "norm a {\n"
            "  reduce    features\n"
            "  // at the end\n"
            "}  // behind it\n"
            "\n"
            "// of b\n"
            "norm b {\n"
            "  reduce    rows\n"
            "}\n");
}

TEST(FormattedComments, WithinAClauseStayWithIt) {
  EXPECT_EQ(formatted("norm a {\n"
                      "  reduce rows\n"
                      "  divide_by running\n"
                      "  running decay = 0.9,  // first\n"
                      "    init = 1  // second\n"
                      "  backward approximate(\n"
                      "    // inside\n"
                      "    decay = 0.9)\n"
                      "}\n"),
            "norm a {\n"
            "  reduce    rows\n"
            "  divide_by running\n"
            "  // second\n"
            "  running   decay = 0.9  // first\n"
            "  // inside\n"
            "  backward  approximate(decay = 0.9)\n"
            "}\n");
}

TEST(FormattedComments, AreNoneInATextWithoutThem) {
  const std::string text = "norm a {\n  reduce    rows\n}\n";
  EXPECT_EQ(formatted(text), canonical(text));
}

}  // namespace
}  // namespace normc
