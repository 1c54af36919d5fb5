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
  const std::string once = withComments(text, canonical(text));
  EXPECT_EQ(canonical(once), canonical(text)) << once;
  EXPECT_EQ(withComments(once, canonical(once)), once);
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

TEST(FormattedComments, OfAClauseThatIsADefaultGoOnToTheNext) {
  EXPECT_EQ(formatted("norm a {\n"
                      "  reduce features\n"
                      "  // in front of a default\n"
                      "  backward exact  // behind a default\n"
                      "  epsilon 0.5\n"
                      "}\n"),
            "norm a {\n"
            "  reduce    features\n"
            "  // in front of a default\n"
            "  // behind a default\n"
            "  epsilon   0.5\n"
            "}\n");
}

TEST(FormattedComments, OfSeveralNormsStayWithTheirs) {
  const std::string text =
      formatted("norm a { reduce rows }  // one\n// of b\nnorm b from a {\n  // in b\n  epsilon 2e-3\n}\n");
  EXPECT_LT(text.find("// one"), text.find("// of b"));
  EXPECT_LT(text.find("// of b"), text.find("norm b"));
  EXPECT_LT(text.find("norm b"), text.find("// in b"));
  EXPECT_LT(text.find("// in b"), text.find("epsilon   0.002"));
}

TEST(FormattedComments, WithinAClauseAreKept) {
  const std::string text = formatted(
      "norm a {\n  reduce rows\n  divide_by running\n  running decay = 0.9,  // first\n    init = 1  // "
      "second\n"
      "  backward approximate(\n    // inside\n    decay = 0.9)\n}\n");
  for (const char* each : {"// first", "// second", "// inside"})
    EXPECT_NE(text.find(each), text.npos) << text;
}

TEST(FormattedComments, AreNoneInATextWithoutThem) {
  const std::string text = "norm a {\n  reduce    rows\n}\n";
  EXPECT_EQ(formatted(text), canonical(text));
}

}  // namespace
}  // namespace normc
