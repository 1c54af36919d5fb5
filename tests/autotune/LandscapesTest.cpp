// The search on landscapes with the costs of a machine: what it finds in those that were measured, and that
// it ends at its budget, whatever a call takes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "autotune/search/Search.h"
#include "tests/autotune/Landscapes.h"

namespace normc::tune::test {
namespace {

TEST(Landscapes, AreReadAsTheyWereWritten) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("normc-landscape-" + std::to_string(getpid()))).string();
  std::ofstream(path) << "# a problem, 10240 rows\nscreened_rows 1024\nrows 10240\nseconds 0.005 0.05\n"
                         "resident,rows=2\t4.1e+07\t0 1 2\tok\t1000\t1000\tdefault\n"
                         "resident,rows=4\t4.0e+07\t0 2 2\tok\t800 900 850\t700 800 900\n"
                         "resident,rows=8\t3.9e+07\t0 3 2\twrong\t\t\n";
  const MeasuredLandscape measured = readLandscape(path);
  std::filesystem::remove(path);
  EXPECT_EQ(measured.landscape.size(), 3u);
  EXPECT_EQ(measured.landscape.byDefault(), 0u);
  EXPECT_EQ(measured.landscape.neighbours(0), std::vector<size_t>{1});
  EXPECT_EQ(measured.scale, 10);
  EXPECT_EQ(measured.known[1].screened.size(), 3u);
  EXPECT_EQ(measured.known[2].status, Status::Wrong);
  EXPECT_NEAR(measured.behindBest(0), 1 / 0.8, 1e-9);
  MeasuredLab lab(measured, {}, 1);
  EXPECT_EQ(search(measured.landscape, lab, {}).decision.chosen, 1u);
}

class MeasuredLandscapes : public testing::TestWithParam<std::string> {};

/// Nine of ten searches with the budget of `normc tune` choose a schedule that is at least 97 % as fast as
/// the fastest of all, which were all measured (bench/landscape).
TEST_P(MeasuredLandscapes, ChoicesAreNearTheFastestOfAllSchedules) {
  const MeasuredLandscape measured = readLandscape(NORMC_LANDSCAPES "/" + GetParam() + ".tsv");
  std::vector<double> behind;
  size_t fewest = measured.landscape.size();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    MeasuredLab lab(measured, {}, seed);
    SearchOptions options;
    options.seed = seed;
    const Outcome outcome = search(measured.landscape, lab, options);
    ASSERT_EQ(outcome.failure, "");
    EXPECT_LE(outcome.seconds, 1.1 * options.budget);
    behind.push_back(measured.behindBest(outcome.decision.chosen));
    fewest = std::min(fewest, outcome.screened.size());
  }
  std::sort(behind.begin(), behind.end());
  std::printf("%zu of %zu schedules screened; behind the fastest: default %.3f, choices %.3f, %.3f, %.3f\n",
              fewest, measured.landscape.size(), measured.behindBest(measured.landscape.byDefault()),
              behind[10], behind[17], behind[19]);
  EXPECT_LE(behind[17], 1 / 0.97);
}

std::vector<std::string> landscapes() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(NORMC_LANDSCAPES))
    names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, MeasuredLandscapes, testing::ValuesIn(landscapes()),
                         [](const auto& info) { return info.param; });

/// A landscape of few schedules, each call of which takes `seconds`.
MeasuredLandscape slow(double scale, double seconds) {
  std::vector<Point> points;
  std::vector<MeasuredLandscape::Known> known;
  for (int i = 0; i < 200; ++i) {
    points.push_back({"mlir", "i=" + std::to_string(i), 1 + 0.001 * i, {0, i}});
    const double ratio = 1 - 0.0005 * i;
    known.push_back({Status::Ok, {ratio, ratio * 1.01}, {ratio, ratio * 1.01}});
  }
  return {"slow", Landscape(std::move(points), 0), std::move(known), scale, {seconds / scale, seconds}};
}

TEST(Budget, IsALimitWhateverACallAndAProcessTake) {
  for (const double budget : {5.0, 20.0, 60.0})
    for (const double scale : {1.0, 8.0})
      for (const double seconds : {1e-5, 1e-3, 0.05})
        for (const double start : {0.05, 0.5, 1.5}) {
          if (start > budget / 10) continue;  // it has to hold a few processes
          const MeasuredLandscape landscape = slow(scale, seconds);
          MeasuredLab lab(landscape, {.start = {0.3, start}}, 1);
          SearchOptions options;
          options.budget = budget;
          const Outcome outcome = search(landscape.landscape, lab, options);
          EXPECT_LE(outcome.seconds, 1.1 * budget)
              << budget << " s, scale " << scale << ", a call of " << seconds << " s, a start of " << start;
          EXPECT_GE(outcome.screened.size(), 2u);
          EXPECT_GE(outcome.racers.at(0).samples.size(), 1u);
        }
}

TEST(Budget, IsForTheSearchAloneAboveTheLeastSearch) {
  const MeasuredLandscape landscape = slow(1, 1e-3);
  MeasuredLab lab(landscape, {}, 1);
  SearchOptions options;
  options.budget = 0.01;
  const Outcome outcome = search(landscape.landscape, lab, options);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_TRUE(outcome.complete);
  EXPECT_TRUE(outcome.budgetSpent);
  EXPECT_EQ(outcome.screened.size(), 2u) << "the default and one candidate";
  EXPECT_EQ(outcome.racers.at(0).samples.size(), 1u);
  EXPECT_TRUE(outcome.decision.tie) << "one round proves nothing";
}

TEST(Heats, MeasureTheBetterHalfWithTwiceTheRounds) {
  const MeasuredLandscape landscape = slow(8, 1e-3);
  struct Watched : MeasuredLab {
    using MeasuredLab::MeasuredLab;
    std::vector<Samples> heat(const std::vector<size_t>& points, int rounds) override {
      heats.emplace_back(points.size(), rounds);
      return MeasuredLab::heat(points, rounds);
    }
    std::vector<std::pair<size_t, int>> heats;
  } lab(landscape, {}, 1);
  const SearchOptions options;
  search(landscape.landscape, lab, options);
  ASSERT_GE(lab.heats.size(), 2u);
  for (size_t i = 1; i < lab.heats.size(); ++i) {
    EXPECT_LE(lab.heats[i].first, std::max(lab.heats[i - 1].first / 2 + 2, size_t(options.finalists) + 2));
    EXPECT_EQ(lab.heats[i].second, 2 * lab.heats[i - 1].second);
  }
  EXPECT_LE(lab.heats.back().first, size_t(options.finalists) + 2) << "and the default";
}

TEST(Heats, AreHeldOnlyWhereFewerRowsAreScreened) {
  const MeasuredLandscape landscape = slow(1, 1e-3);
  struct Watched : MeasuredLab {
    using MeasuredLab::MeasuredLab;
    std::vector<Samples> heat(const std::vector<size_t>& points, int rounds) override {
      ADD_FAILURE();
      return MeasuredLab::heat(points, rounds);
    }
  } lab(landscape, {}, 1);
  EXPECT_EQ(search(landscape.landscape, lab, {}).failure, "");
}

}  // namespace
}  // namespace normc::tune::test
