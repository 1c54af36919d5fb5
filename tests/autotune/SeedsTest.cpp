// The first candidates of a search: of different kinds, none of them hopeless.
#include <gtest/gtest.h>

#include <set>

#include "autotune/search/Search.h"

namespace normc::tune {
namespace {

TEST(Seeds, CoverEveryStrategyAndKeepApart) {
  std::vector<Point> points;
  for (int space = 0; space < 3; ++space)
    for (int i = 0; i < 10; ++i)
      points.push_back({"mlir",
                        std::to_string(space) + "," + std::to_string(i),
                        1.0 + space + 0.01 * i,
                        {space, i, i / 3}});
  const Landscape landscape(std::move(points), 5);
  SearchOptions options;
  options.fromModel = 4;
  options.atRandom = 0;
  std::set<int> spaces;
  for (const size_t seed : seedsOf(landscape, options)) spaces.insert(landscape[seed].at[0]);
  EXPECT_EQ(spaces.size(), 3u);
}

/// Ten points of each kind, whose predictions begin where the kind says and rise by a thousandth; the default
/// is the last.
Landscape kindsOf(const std::vector<std::pair<std::string, double>>& kinds) {
  std::vector<Point> points;
  for (const auto& [words, predicted] : kinds)
    for (int i = 0; i < 10; ++i)
      points.push_back({"mlir",
                        words + " " + std::to_string(i),
                        predicted + 0.001 * i,
                        {0, int(points.size()), i / 3},
                        words});
  const size_t last = points.size() - 1;
  return Landscape(std::move(points), last);
}

std::vector<std::string> kindsOf(const Landscape& landscape, const std::vector<size_t>& points) {
  std::vector<std::string> kinds;
  for (const size_t point : points) kinds.push_back(landscape[point].family);
  return kinds;
}

TEST(Seeds, AFewAreOfDifferentKinds) {
  const Landscape landscape = kindsOf({{"warp", 1},
                                       {"warp copied", 1.01},
                                       {"block", 1.03},
                                       {"block cluster bulk", 1.2},
                                       {"lanes", 1.3},
                                       {"block", 1.25}});
  SearchOptions options;
  options.atRandom = 0;
  options.fromModel = 2;
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kindsOf(landscape, seedsOf(landscape, options)), (Kinds{"block", "warp", "block cluster bulk"}))
      << "neither one word from the best, nor the kind of the default, nor unlikely";
  options.fromModel = 5;
  EXPECT_EQ(kindsOf(landscape, seedsOf(landscape, options)),
            (Kinds{"block", "warp", "block cluster bulk", "warp copied", "block", "lanes"}));
}

TEST(Seeds, AtRandomAreNewKindsThatAreNotHopeless) {
  const Landscape landscape = kindsOf({{"warp", 1},
                                       {"block", 1.1},
                                       {"lanes", 1.3},
                                       {"lanes copied", 1.4},
                                       {"walked", 1.6},
                                       {"walked cluster", 9},
                                       {"warp", 1.2}});
  for (uint64_t seed = 1; seed < 20; ++seed) {
    SearchOptions options;
    options.fromModel = 2;
    options.atRandom = 2;
    options.seed = seed;
    std::vector<std::string> kinds = kindsOf(landscape, seedsOf(landscape, options));
    ASSERT_EQ(kinds.size(), 5u);
    EXPECT_EQ(std::set<std::string>(kinds.end() - 2, kinds.end()),
              (std::set<std::string>{"lanes", "lanes copied"}))
        << seed;
    options.atRandom = 30;
    for (const size_t point : seedsOf(landscape, options)) EXPECT_LE(landscape[point].predicted, 1.5) << seed;
  }
  const Landscape slow = kindsOf({{"warp", 1}, {"block", 1.9}, {"lanes", 2}});
  SearchOptions options;
  options.fromModel = 1;
  options.atRandom = 1;
  EXPECT_EQ(kindsOf(slow, seedsOf(slow, options)).back(), "block")
      << "no slower than the default is not hopeless";
}

}  // namespace
}  // namespace normc::tune
