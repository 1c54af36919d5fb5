// How the cases of a suite are divided: nothing is lost, and the sample has every pair.
#include <algorithm>
#include <set>
#include <tuple>

#include "tests/Sample.h"

namespace normc {
namespace {

using Case = std::tuple<int, int, int, int>;

Properties propertiesOf(const Case& c) {
  const auto& [a, b, d, e] = c;
  return {std::to_string(a), std::to_string(b), std::to_string(d), std::to_string(e)};
}

/// Returns all cases of four properties but those that a rule forbids.
std::vector<Case> cases() {
  std::vector<Case> list;
  for (int a = 0; a < 9; ++a)
    for (int b = 0; b < 5; ++b)
      for (int d = 0; d < 3; ++d)
        for (int e = 0; e < 2; ++e)
          if ((a + b) % 4 && !(d == 2 && e == 1)) list.push_back({a, b, d, e});
  return list;
}

/// Returns which values of two properties stand together.
std::set<std::tuple<size_t, std::string, size_t, std::string>> pairsOf(const std::vector<Case>& list) {
  std::set<std::tuple<size_t, std::string, size_t, std::string>> pairs;
  for (const Case& c : list) {
    const Properties p = propertiesOf(c);
    for (size_t i = 0; i < p.size(); ++i)
      for (size_t j = 0; j < i; ++j) pairs.insert({i, p[i], j, p[j]});
  }
  return pairs;
}

TEST(Sample, HasEachTwoValuesThatStandTogetherAndFewCases) {
  const auto [sample, rest] = divided(cases(), propertiesOf);
  EXPECT_EQ(pairsOf(sample), pairsOf(cases()));
  EXPECT_LE(sample.size(), 50u) << "33 pairs of the first two properties";
}

TEST(Sample, HasEachName) {
  auto nameOf = [](const Case& c) { return std::to_string(std::get<0>(c) * 2 + std::get<3>(c)); };
  std::set<std::string> all, sampled;
  for (const Case& c : cases()) all.insert(nameOf(c));
  const auto [sample, rest] =
      divided(cases(), [](const Case& c) { return Properties{std::to_string(std::get<1>(c))}; }, nameOf);
  for (const Case& c : sample) sampled.insert(nameOf(c));
  EXPECT_EQ(sampled, all);
  EXPECT_EQ(sample.size(), all.size()) << "one property has no pairs";
}

TEST(Sample, AndTheRestAreAllCasesOnce) {
  auto [both, rest] = divided(cases(), propertiesOf);
  EXPECT_FALSE(rest.empty());
  both.insert(both.end(), rest.begin(), rest.end());
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, cases());
}

TEST(Sample, OfAPartIsThePartOfTheSample) {
  const auto whole = divided(cases(), propertiesOf);
  const auto some = part(whole, [](const Case& c) { return std::get<0>(c) == 3; });
  const auto others = part(whole, [](const Case& c) { return std::get<0>(c) != 3; });
  EXPECT_EQ(some.sample.size() + others.sample.size(), whole.sample.size());
  EXPECT_EQ(some.rest.size() + others.rest.size(), whole.rest.size());
  for (const Case& c : some.sample) EXPECT_EQ(std::count(whole.sample.begin(), whole.sample.end(), c), 1);
}

TEST(Sample, OfNothingIsNothing) {
  const auto [sample, rest] = divided(std::vector<Case>{}, propertiesOf);
  EXPECT_TRUE(sample.empty() && rest.empty());
}

}  // namespace
}  // namespace normc
