#include <gtest/gtest.h>

#include <algorithm>

#include "dsl/Nearest.h"
#include "dsl/Result.h"

namespace normc {
namespace {

TEST(Nearest, DistanceCountsEditsAndSwaps) {
  EXPECT_EQ(editDistance("norm", "norm"), 0);
  EXPECT_EQ(editDistance("NORM", "norm"), 0);
  EXPECT_EQ(editDistance("nrom", "norm"), 1);
  EXPECT_EQ(editDistance("norms", "norm"), 1);
  EXPECT_EQ(editDistance("nor", "norm"), 1);
  EXPECT_EQ(editDistance("narm", "norm"), 1);
  EXPECT_EQ(editDistance("", "norm"), 4);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3);
}

TEST(Nearest, DistanceEndsAtItsLimit) {
  // All pairs of words of up to 4 letters of 2: the limit changes nothing but what is above it.
  std::vector<std::string> words = {""};
  for (size_t i = 0; words[i].size() < 4; ++i)
    for (const char* letter : {"a", "b"}) words.push_back(words[i] + letter);
  for (const std::string& a : words) {
    for (const std::string& b : words) {
      for (int most = -1; most < 6; ++most)
        EXPECT_EQ(editDistance(a, b, most), std::min(editDistance(a, b), most + 1)) << a << " " << b;
    }
  }
}

TEST(Nearest, PrefersTheNearestAndRefusesTheFar) {
  const std::vector<std::string> known = {"power_norm", "power_norm_v", "layer_norm"};
  EXPECT_EQ(nearest("powr_norm_v", known), "power_norm_v");
  EXPECT_EQ(nearest("layernorm", known), "layer_norm");
  EXPECT_EQ(nearest("softmax", known), std::nullopt);
  EXPECT_EQ(nearest("", known), std::nullopt);
  EXPECT_EQ(nearest("G", {"y", "g1"}), std::nullopt) << "a third of the letters is less than one";
  EXPECT_EQ(nearest("at", {"it", "ta", "a"}), std::nullopt);
  EXPECT_EQ(nearest("AT", {"it", "at"}), "at");
  EXPECT_EQ(nearest("row", {"rows"}), "rows");
  EXPECT_EQ(nearest(std::string(100000, 'a'), known), std::nullopt);
}

TEST(Nearest, HintsInWords) {
  EXPECT_EQ(didYouMean("f23", {"f32", "f64"}, "no"), "did you mean 'f32'?");
  EXPECT_EQ(didYouMean("int8", {"f32", "f64"}, "use f32 or f64"), "use f32 or f64");
  EXPECT_EQ(oneOf({}), "");
  EXPECT_EQ(oneOf({"a"}), "a");
  EXPECT_EQ(oneOf({"a", "b"}), "a or b");
  EXPECT_EQ(oneOf({"a", "b", "c"}), "a, b or c");
}

TEST(Nearest, QuotesAreShortAndPrintable) {
  EXPECT_EQ(inQuotes("a b"), "'a b'");
  EXPECT_EQ(inQuotes(std::string("a\0\xff", 3)), "'a\\x00\\xff'");
  EXPECT_EQ(inQuotes(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
}

TEST(Diagnostic, ShowsPlaceLineCaretRuleAndHint) {
  const Diagnostic full{"too large", "C7", "use 3", {"f.norm", 2, 3, 4}, "a bcde f"};
  EXPECT_EQ(full.text(), "f.norm:2:3: error: too large [C7]\n  a bcde f\n    ^~~~\n  hint: use 3\n");
}

TEST(Diagnostic, LeavesOutWhatItDoesNotKnow) {
  EXPECT_EQ((Diagnostic{"too large", "", "", {}, ""}).text(), "error: too large\n");
  EXPECT_EQ((Diagnostic{"not found", "", "", {"f.norm"}, ""}).text(), "f.norm: error: not found\n");
}

TEST(Diagnostic, TheCaretStaysUnderItsWord) {
  const Diagnostic tab{"m", "", "", {"", 1, 3, 1}, "\t\tx"};
  EXPECT_EQ(tab.text(), "error: m\n  \t\tx\n  \t\t^\n");
  const Diagnostic umlaut{"m", "", "", {"", 1, 4, 9}, "\xc3\xa4 x"};
  EXPECT_EQ(umlaut.text(), "error: m\n  \xc3\xa4 x\n    ^\n");
}

TEST(Result, HoldsAValueOrReasons) {
  const Result<int> good = 3;
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 3);
  const Result<int> bad = Diagnostic{"no", "", "", {}, ""};
  ASSERT_FALSE(bad);
  EXPECT_EQ(text(bad.errors()), "error: no\n");
}

}  // namespace
}  // namespace normc
