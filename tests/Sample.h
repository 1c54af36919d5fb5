// Divides the cases of a suite into a sample, which every run of the tests executes, and the rest, which
// `scripts/test --all` adds. Suites of the rest are called RestOf...: tests/GroupTests.cmake gives them the
// label `rest`.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace normc {

template <typename Case>
struct Divided {
  std::vector<Case> sample, rest;
};

/// The properties of a case: its norm, its entry, its type... Cases of one list have equally many.
using Properties = std::vector<std::string>;

/// Returns for each case whether it is in the sample. Each two values that stand together in one of the cases
/// do so in one of the sample: each kind of norm meets each entry, type and layout that it has. Each value of
/// `names`, which has one for each case or is empty, is in the sample too. Cases that bring the most new
/// pairs and names are taken first, and of those the first.
inline std::vector<bool> pairwise(const std::vector<Properties>& cases,
                                  const std::vector<std::string>& names = {}) {
  using Value = std::pair<size_t, std::string>;  // and whose it is
  std::map<std::pair<Value, Value>, size_t> numbers;
  std::vector<std::vector<size_t>> pairs(cases.size());  // a name is a pair with itself
  for (size_t c = 0; c < cases.size(); ++c) {
    auto add = [&](const Value& one, const Value& other) {
      pairs[c].push_back(numbers.try_emplace({one, other}, numbers.size()).first->second);
    };
    const Properties& values = cases[c];
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j = 0; j < i; ++j) add({i, values[i]}, {j, values[j]});
    if (!names.empty()) add({values.size(), names[c]}, {values.size(), names[c]});
  }
  std::vector<bool> sampled(cases.size()), met(numbers.size());
  const size_t most = cases.empty() ? 0 : pairs.front().size();
  for (size_t wanted = most; wanted > 0; --wanted)
    for (size_t c = 0; c < cases.size(); ++c) {
      size_t fresh = 0;
      for (size_t pair : pairs[c]) fresh += !met[pair];
      if (sampled[c] || fresh < wanted) continue;
      sampled[c] = true;
      for (size_t pair : pairs[c]) met[pair] = true;
    }
  return sampled;
}

/// Divides `all` by `pairwise` of what `propertiesOf(case)` and `nameOf(case)` return.
template <typename Case, typename Function, typename Name>
Divided<Case> divided(const std::vector<Case>& all, Function propertiesOf, Name nameOf) {
  std::vector<Properties> properties;
  std::vector<std::string> names;
  for (const Case& c : all) properties.push_back(propertiesOf(c)), names.push_back(nameOf(c));
  const std::vector<bool> sampled = pairwise(properties, names);
  Divided<Case> result;
  for (size_t i = 0; i < all.size(); ++i) (sampled[i] ? result.sample : result.rest).push_back(all[i]);
  return result;
}

/// Divides `all` by pairs alone.
template <typename Case, typename Function>
Divided<Case> divided(const std::vector<Case>& all, Function propertiesOf) {
  return divided(all, propertiesOf, [](const Case&) { return std::string(); });
}

/// Returns the cases of both parts that `isIn(case)` is true of.
template <typename Case, typename Function>
Divided<Case> part(const Divided<Case>& whole, Function isIn) {
  Divided<Case> result;
  for (const Case& c : whole.sample)
    if (isIn(c)) result.sample.push_back(c);
  for (const Case& c : whole.rest)
    if (isIn(c)) result.rest.push_back(c);
  return result;
}

/// Instantiates `suite` with the sample as `name`, with the rest as RestOf`name`.
#define NORMC_INSTANTIATE_SAMPLE(name, suite, divided, caseName)                        \
  INSTANTIATE_TEST_SUITE_P(name, suite, testing::ValuesIn((divided).sample), caseName); \
  INSTANTIATE_TEST_SUITE_P(RestOf##name, suite, testing::ValuesIn((divided).rest), caseName)

}  // namespace normc
