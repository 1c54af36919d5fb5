#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "bench/quickstart/Text.h"

namespace normc::quickstart {
namespace {

TEST(QuickstartText, WordsInLowerCaseAndPunctuation) {
  EXPECT_EQ(tokensOf("The GNU\n (GPL), v3."),
            (std::vector<std::string>{"the", "gnu", "(", "gpl", ")", ",", "v3", "."}));
  EXPECT_TRUE(tokensOf(" \n\t").empty());
}

float dot(const std::vector<float>& rows, int a, int b, int64_t d) {
  return std::inner_product(rows.begin() + a * d, rows.begin() + (a + 1) * d, rows.begin() + b * d, 0.f);
}

TEST(QuickstartText, RelatedWordsAreNearer) {
  constexpr int64_t d = 768;
  std::vector<float> rows;  // one token each: no context
  for (const char* word : {"license", "licensed", "warranty"}) {
    const auto row = activationsOf({word}, d);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  EXPECT_GT(dot(rows, 0, 1, d), 2 * std::abs(dot(rows, 0, 2, d)));
}

TEST(QuickstartText, ARowHoldsHalfOfTheTokenBefore) {
  constexpr int64_t d = 100;
  const auto alone = activationsOf({"free"}, d), before = activationsOf({"software"}, d);
  const auto both = activationsOf({"software", "free"}, d);
  for (int f = 0; f < d; ++f) EXPECT_FLOAT_EQ(both[d + f], alone[f] + 0.5f * before[f]);
}

}  // namespace
}  // namespace normc::quickstart
