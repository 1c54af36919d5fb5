// Characters, numbers and lines of a text, and how messages show them.
#include <gtest/gtest.h>

#include "tests/dsl/SpecText.h"

namespace normc {
namespace {

TEST(Lexer, ReportsWhatIsNoCharacterOfTheLanguage) {
  EXPECT_EQ(errorsOf(norm({"reduce rows  # comment", "center none"})),
            "t.norm:2:16: error: unexpected '#'\n"
            "    reduce rows  # comment\n"
            "                 ^\n"
            "  hint: a comment starts with //\n");
  EXPECT_EQ(errorsOf(norm({"reduce \xc3\xa4"})),
            "t.norm:2:10: error: unexpected '\\xc3\\xa4'\n"
            "    reduce \xc3\xa4\n"
            "           ^~\n"
            "  hint: words have letters from a to z, digits and _; comments may have any\n");
}

TEST(Lexer, ReadsEveryFormOfANumberThatTheGrammarHas) {
  for (const char* text : {"0.5", "+0.5", ".5", "+.5", "5e-1", "+.5e0", "50.e-2", "5E-01"})
    EXPECT_EQ(specOf(norm({"reduce rows", std::string("epsilon ") + text})).epsilon, 0.5) << text;
  EXPECT_EQ(errorsOf(norm({"reduce rows", "epsilon -.5"})),
            "t.norm:3:11: error: epsilon is -0.5 [C23]\n"
            "    epsilon -.5\n"
            "            ^~~\n"
            "  hint: use a value above 0, e.g. 1e-5\n");
  for (const char* text : {".", "+", "+.", "-.e5"})
    EXPECT_NE(errorsOf(norm({"reduce rows", std::string("epsilon ") + text})), "") << text;
}

TEST(Lexer, ReportsNumbersOutOfRange) {
  EXPECT_EQ(errorsOf(norm({"reduce rows", "epsilon 1e-999"})),
            "t.norm:3:11: error: the number '1e-999' is out of the range of double precision\n"
            "    epsilon 1e-999\n"
            "            ^~~~~~\n"
            "  hint: use a value from 1e-307 to 1e308\n");
}

TEST(Lexer, KeepsTabsAboveTheCaretAndForgetsCarriageReturns) {
  EXPECT_EQ(errorsOf("norm n {\r\n\treduce\tcols\r\n}\r\n"),
            "t.norm:2:9: error: expected rows, features, segment or segment_features, found 'cols'\n"
            "  \treduce\tcols\n"
            "  \t      \t^~~~\n");
}

TEST(Lexer, PassesOverAByteOrderMark) {
  EXPECT_EQ(specOf("\xef\xbb\xbf" + norm({"reduce rows"})).reduce, Reduce::Rows);
  EXPECT_EQ(errorsOf("\xef\xbb\xbfnorms"),
            "t.norm:1:1: error: expected 'norm', found 'norms'\n"
            "  norms\n"
            "  ^~~~~\n"
            "  hint: a file is a list of 'norm NAME { ... }'\n");
}

TEST(Diagnostics, ShowNothingThatATerminalWouldObey) {
  using namespace std::string_literals;
  EXPECT_EQ(errorsOf(norm({"reduce \x1b[2J\0\xff\xc2\x9b\xc3\xa4 7f\x7f"s})),
            "t.norm:2:10: error: unexpected '\\x1b['\n"
            "    reduce ?[2J????\xc3\xa4 7f?\n"
            "           ^~\n"
            "t.norm:2:12: error: '2J' is not a number\n"
            "    reduce ?[2J????\xc3\xa4 7f?\n"
            "             ^~\n"
            "  hint: write it like 16, 0.9 or 1e-5\n"
            "t.norm:2:14: error: unexpected '\\x00\\xff\\xc2\\x9b\\xc3\\xa4'\n"
            "    reduce ?[2J????\xc3\xa4 7f?\n"
            "               ^~~~~~\n"
            "t.norm:2:21: error: '7f' is not a number\n"
            "    reduce ?[2J????\xc3\xa4 7f?\n"
            "                     ^~\n"
            "  hint: write it like 16, 0.9 or 1e-5\n"
            "t.norm:2:23: error: unexpected '\\x7f'\n"
            "    reduce ?[2J????\xc3\xa4 7f?\n"
            "                       ^\n");
}

TEST(Diagnostics, ShowOfALongLineWhatStandsAroundTheCaret) {
  const std::string far(200, ' ');
  EXPECT_EQ(errorsOf("norm n { // " + far + "\n" + far + "cols" + far + "\n  reduce rows\n}\n"),
            "t.norm:2:201: error: unknown clause 'cols'\n"
            "  ..." +
                std::string(60, ' ') + "cols" + std::string(56, ' ') + "...\n" + "  " + std::string(63, ' ') +
                "^~~~\n"
                "  hint: the clauses are reduce, center, moment, divide_by, running, backward, renorm, "
                "residual, gate, affine, modulate, rope, activation, quantize, epsilon, "
                "pre, warmup or padding; docs/language.md says what has none, and what to do instead\n");
}

}  // namespace
}  // namespace normc
