// The search on made-up landscapes, with a clock that only counts: same input, same result.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "autotune/search/Search.h"
#include "autotune/tune/LiveLab.h"
#include "tests/autotune/Replay.h"

namespace normc::tune {
namespace {

/// Points of a grid of sides x sides; the default is the first. `seconds` gives their true times, which the
/// model knows up to `blindness`.
struct World {
  Landscape landscape;
  std::map<size_t, Replay::Known> known;
  std::vector<double> truth;
};

World worldOf(int side, const std::function<double(int, int)>& seconds, double noise, uint64_t seed,
              double blindness = 0.2) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Point> points;
  std::vector<double> truth;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      truth.push_back(seconds(i, j));
      points.push_back({"mlir",
                        "i=" + std::to_string(i) + ",j=" + std::to_string(j),
                        truth.back() * std::exp(blindness * normal(random)),
                        {0, i, j}});
    }
  World world{Landscape(std::move(points), 0), {}, truth};
  for (size_t i = 0; i < truth.size(); ++i) {
    Replay::Known& one = world.known[i];
    for (int sample = 0; sample < 97; ++sample) {
      const double drift = std::exp(0.2 * normal(random));  // meets both
      one.samples.push_back(truth[i] * drift * std::exp(noise * normal(random)));
      one.reference.push_back(truth[0] * drift * std::exp(noise * normal(random)));
    }
  }
  world.known[0].reference = world.known[0].samples;
  return world;
}

double bowl(int i, int j) { return 1e-3 * (1 + 0.03 * ((i - 5) * (i - 5) + (j - 3) * (j - 3))); }

Outcome searchIn(const World& world, SearchOptions options = {}, double making = 0.1) {
  Replay lab(world.landscape, world.known, making);
  return search(world.landscape, lab, options);
}

TEST(Search, FindsTheBottomWithoutLookingEverywhere) {
  const World world = worldOf(9, bowl, 0.02, 1);
  const Outcome outcome = searchIn(world);
  EXPECT_FALSE(outcome.decision.tie);
  EXPECT_LE(world.truth[outcome.decision.chosen], 1e-3 / 0.97);
  EXPECT_LT(outcome.screened.size(), world.truth.size());
}

TEST(Search, ChoosesNearTheBestOnManyLandscapes) {
  int good = 0;
  constexpr int kWorlds = 12;
  for (int k = 0; k < kWorlds; ++k) {
    const World world = worldOf(
        8,
        [&](int i, int j) {
          return 1e-3 * (1 + 0.02 * std::fabs(i - k % 8) + 0.03 * std::fabs(j - k % 5) +
                         0.02 * ((i * 7 + j * 3 + k) % 4));
        },
        0.02, 10 + uint64_t(k));
    const double best = *std::min_element(world.truth.begin(), world.truth.end());
    good += world.truth[searchIn(world).decision.chosen] <= best / 0.97;
  }
  EXPECT_GE(good, kWorlds - 1);
}

TEST(Search, TheSameRecordsGiveTheSameSearch) {
  const World world = worldOf(9, bowl, 0.05, 3);
  const Outcome one = searchIn(world), two = searchIn(world);
  EXPECT_EQ(one.decision.chosen, two.decision.chosen);
  EXPECT_EQ(one.decision.ratio.value, two.decision.ratio.value);
  EXPECT_EQ(one.screened.size(), two.screened.size());
  EXPECT_EQ(one.seconds, two.seconds);
}

TEST(Search, RetuningUnderOtherNoiseAgrees) {
  int agreed = 0;
  constexpr int kWorlds = 6;
  for (int k = 0; k < kWorlds; ++k) {
    const auto seconds = [&](int i, int j) {
      return 1e-3 * (1 + 0.02 * std::fabs(i - k % 8) + 0.04 * std::fabs(j - k % 5));
    };
    const double chosen = [&] {
      const World world = worldOf(8, seconds, 0.01, 100);
      return world.truth[searchIn(world).decision.chosen];
    }();
    bool same = true;
    for (uint64_t seed = 1; seed < 4; ++seed) {
      const World world = worldOf(8, seconds, 0.01, 100 + seed);
      same &= std::fabs(world.truth[searchIn(world).decision.chosen] / chosen - 1) <= 0.02;  // or a tie
    }
    agreed += same;
  }
  EXPECT_EQ(agreed, kWorlds);
}

TEST(Search, KeepsTheDefaultWhereNothingIsFaster) {
  const World world = worldOf(6, [](int i, int j) { return 1e-3 * (1 + 0.05 * (i + j)); }, 0.03, 4);
  const Outcome outcome = searchIn(world);
  EXPECT_TRUE(outcome.decision.tie);
  EXPECT_EQ(outcome.decision.chosen, 0u);
  EXPECT_EQ(outcome.decision.ratio.value, 1);
}

TEST(Search, KeepsTheDefaultWhereAGainIsSmallerThanTwoPercent) {
  const World world = worldOf(6, [](int i, int j) { return i + j == 0 ? 1e-3 : 0.985e-3; }, 1e-4, 5);
  const Outcome outcome = searchIn(world);
  EXPECT_TRUE(outcome.decision.tie);
  EXPECT_NE(outcome.decision.leader, 0u) << "a schedule was in front all the same";
  EXPECT_LT(outcome.decision.leaderRatio.value, 1);
}

TEST(Search, StopsScreeningWhenItsShareOfTheBudgetIsSpent) {
  const World world = worldOf(16, bowl, 0.02, 6);
  SearchOptions options;
  options.budget = 2;
  const Outcome outcome = searchIn(world, options);
  EXPECT_TRUE(outcome.budgetSpent);
  EXPECT_LE(outcome.screened.size(), 1u + 12u + size_t(options.batch)) << "0.1 s each";
  EXPECT_GE(outcome.racers[0].samples.size(), 20u) << "a race is held all the same";
}

TEST(Search, ExhaustiveLooksEverywhereWhateverTheBudget) {
  const World world = worldOf(7, bowl, 0.02, 7);
  SearchOptions options;
  options.exhaustive = true, options.budget = 0.1;
  EXPECT_EQ(searchIn(world, options).screened.size(), 49u);
}

TEST(Search, NeverChoosesWhatWasRejected) {
  World world = worldOf(9, bowl, 0.02, 8);
  const double best = *std::min_element(world.truth.begin(), world.truth.end());
  for (size_t i = 0; i < world.truth.size(); ++i)
    if (world.truth[i] < best * 1.05) world.known[i] = {Status::Wrong, "wrong", {}, {}};
  const Outcome outcome = searchIn(world);
  EXPECT_GE(world.truth[outcome.decision.chosen], best * 1.05);
  for (const Racer& racer : outcome.racers) EXPECT_EQ(world.known[racer.point].status, Status::Ok);
}

TEST(Search, TheIncumbentAndTheDefaultAreInTheRace) {
  const World world = worldOf(9, bowl, 0.02, 9);
  SearchOptions options;
  options.incumbent = 80, options.leastRounds = options.mostRounds = 10;
  Replay lab(world.landscape, world.known);
  struct Watched : Lab {
    explicit Watched(Lab& lab) : lab(lab) {}
    double now() override { return lab.now(); }
    bool stopped() override { return false; }
    std::vector<Screened> screen(const std::vector<size_t>& points) override { return lab.screen(points); }
    std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
      first = first.empty() ? points : first;
      return lab.race(points, rounds);
    }
    Lab& lab;
    std::vector<size_t> first;
  } watched(lab);
  search(world.landscape, watched, options);
  EXPECT_EQ(watched.first.at(0), 0u);
  EXPECT_EQ(watched.first.at(1), 80u);
}

TEST(Search, ARaceHasRoomForWhatScreeningCannotOrder) {
  const auto racers = [](double seconds, bool exhaustive) {
    const World world = worldOf(9, [&](int, int) { return seconds; }, 0.05, 10);
    struct Counting : Replay {
      using Replay::Replay;
      std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
        most = std::max(most, points.size());
        return Replay::race(points, rounds);
      }
      size_t most = 0;
    } lab(world.landscape, world.known);
    SearchOptions options;
    options.exhaustive = exhaustive;
    search(world.landscape, lab, options);
    return int(lab.most);
  };
  const SearchOptions options;
  EXPECT_NEAR(racers(1e-5, false), options.mostFinalists + 1, 1)
      << "and the default, if it is not among them";
  EXPECT_LT(racers(0.1, false), options.mostFinalists / 2) << "twenty rounds of them take too long";
  EXPECT_GE(racers(0.1, false), options.finalists);
  EXPECT_NEAR(racers(0.1, true), options.mostFinalists + 1, 1) << "however long it takes";
}

TEST(Search, AnIncumbentThatIsRejectedNowIsNotInTheRace) {
  World world = worldOf(4, bowl, 0.02, 9);
  world.known[5] = {Status::Wrong, "wrong", {}, {}};
  SearchOptions options = {};
  options.incumbent = 5;
  for (const Racer& racer : searchIn(world, options).racers) EXPECT_NE(racer.point, 5u);
}

TEST(Search, AnInterruptLeavesWhatThereIs) {
  const World world = worldOf(9, bowl, 0.02, 11);
  struct Stopping : Replay {
    using Replay::Replay;
    bool stopped() override { return now() > 1; }
  } lab(world.landscape, world.known);
  const Outcome outcome = search(world.landscape, lab, {});
  EXPECT_FALSE(outcome.complete);
  EXPECT_LT(outcome.screened.size(), 20u);
  EXPECT_FALSE(outcome.racers.empty());
}

TEST(Search, ARaceThatWasInterruptedInItsFirstRoundsDecidesNothing) {
  const World world = worldOf(9, bowl, 0.02, 11);
  struct Stopping : Replay {
    using Replay::Replay;
    bool stopped() override { return raced; }
    std::vector<Samples> race(const std::vector<size_t>& points, int) override {
      return raced = true, Replay::race(points, 2);
    }
    bool raced = false;
  } lab(world.landscape, world.known);
  const Outcome outcome = search(world.landscape, lab, {});
  EXPECT_EQ(outcome.failure, "it was interrupted in the first rounds of its race");
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_FALSE(outcome.complete);
}

TEST(Search, ABudgetThatEndsBeforeARaceDecidesNothing) {
  const World world = worldOf(9, bowl, 0.02, 1);
  SearchOptions options;
  options.budget = 1e-3;
  Outcome outcome = searchIn(world, options);
  EXPECT_TRUE(outcome.complete && outcome.budgetSpent);
  EXPECT_FALSE(outcome.decided) << "the default alone was measured";
  options.budget = 20;
  EXPECT_TRUE(searchIn(world, options).decided);
  const World one = worldOf(1, bowl, 0.02, 1);
  EXPECT_TRUE(searchIn(one, options).decided) << "nothing else is legal";
}

TEST(Search, AWinnerThatThereIsNoTimeToConfirmIsNoTie) {
  const World world = worldOf(9, bowl, 0.02, 1);
  struct Late : Replay {
    using Replay::Replay;
    double now() override { return Replay::now() + (raced ? 100 : 0); }
    std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
      std::vector<Samples> samples = Replay::race(points, rounds);
      raced = true;
      return samples;
    }
    bool raced = false;
  } lab(world.landscape, world.known);
  const Outcome outcome = search(world.landscape, lab, {});
  EXPECT_TRUE(outcome.decision.tie);
  EXPECT_FALSE(outcome.decided);
}

TEST(Search, AFewNoisyRoundsDoNotTakeBackAnEarlierWin) {
  const auto flat = [](int, int) { return 1e-3; };
  SearchOptions options;
  options.incumbent = 5, options.mostRounds = 10;
  EXPECT_FALSE(searchIn(worldOf(4, flat, 0.2, 3), options).decided) << "it may still be faster";
  options.mostRounds = 100;
  EXPECT_TRUE(searchIn(worldOf(4, flat, 0.002, 3), options).decided);
  options.incumbent = 0, options.mostRounds = 10;
  EXPECT_TRUE(searchIn(worldOf(4, flat, 0.2, 3), options).decided) << "a tie was a tie before";
}

TEST(Search, ReportsItsProgress) {
  const World world = worldOf(9, bowl, 0.02, 12);
  SearchOptions options;
  double seconds = 0;
  std::string phases;
  options.progress = [&](const SearchOptions::Progress& p) {
    EXPECT_GE(p.seconds, seconds);
    EXPECT_LE(p.done, p.total);
    seconds = p.seconds;
    if (!phases.ends_with(p.phase)) phases += p.phase;
  };
  searchIn(world, options);
  EXPECT_EQ(phases, "screeningracingconfirming");
}

TEST(Seeds, DefaultThenHintsThenTheModelThenAFewAtRandom) {
  const World world = worldOf(9, bowl, 0.02, 13, 0);
  SearchOptions options;
  options.incumbent = 50, options.hints = {60, 50}, options.fromModel = 4, options.atRandom = 3;
  const auto seeds = seedsOf(world.landscape, options);
  ASSERT_EQ(seeds.size(), 1u + 2u + 4u + 3u);
  EXPECT_EQ(seeds[0], 0u);
  EXPECT_EQ(seeds[1], 50u);
  EXPECT_EQ(seeds[2], 60u);
  EXPECT_EQ(seeds[3],
            world.landscape.ranked()[0] == 50 ? world.landscape.ranked()[1] : world.landscape.ranked()[0]);
  EXPECT_EQ(seedsOf(world.landscape, options), seeds);
  options.seed = 2;
  EXPECT_NE(seedsOf(world.landscape, options), seeds);
}

Samples around(double seconds, double noise, uint64_t seed, int count = 40) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Samples samples;
  for (int i = 0; i < count; ++i) samples.push_back(seconds * std::exp(noise * normal(random)));
  return samples;
}

TEST(Decision, AGainInsideTheNoiseIsATie) {
  const World world = worldOf(3, bowl, 0, 1);
  EXPECT_TRUE(decide(world.landscape, {{0, around(1, 0.4, 1)}, {4, around(0.93, 0.4, 2)}}).tie);
  EXPECT_FALSE(decide(world.landscape, {{0, around(1, 0.01, 1)}, {4, around(0.93, 0.01, 2)}}).tie);
}

TEST(Decision, OfThoseThatAreEquallyFastTheSimplestIsChosen) {
  const World world = worldOf(3, bowl, 0, 1);  // point 4 is two knobs away from the default, point 1 is one
  const Decision decision = decide(
      world.landscape, {{0, around(1, 0.005, 1)}, {4, around(0.8, 0.005, 2)}, {1, around(0.803, 0.005, 3)}});
  EXPECT_EQ(decision.leader, 4u);
  EXPECT_EQ(decision.chosen, 1u);
  const Decision clear = decide(
      world.landscape, {{0, around(1, 0.005, 1)}, {4, around(0.7, 0.005, 2)}, {1, around(0.8, 0.005, 3)}});
  EXPECT_EQ(clear.chosen, 4u);
}

TEST(Decision, NobodyIsClearlySlowerWhomOneProcessFoundFaster) {
  Samples theirs = around(1.1, 0.01, 1, 20), ours = around(1, 0.01, 2, 30);
  const Samples lucky = around(0.98, 0.005, 3, 10), unlucky = around(1.1, 0.01, 3, 10);
  Samples mixed = theirs;
  mixed.insert(mixed.end(), lucky.begin(), lucky.end());
  theirs.insert(theirs.end(), unlucky.begin(), unlucky.end());
  EXPECT_TRUE(clearlySlower(theirs, ours, 10));
  EXPECT_FALSE(clearlySlower(mixed, ours, 10));
  EXPECT_FALSE(clearlySlower(ours, theirs, 10));
}

TEST(Decision, NoiseIsThatOfTheFigureSoMoreRoundsMakeItSmaller) {
  EXPECT_LT(noiseOf(around(1, 0.1, 1, 400), around(1, 0.1, 2, 400)),
            noiseOf(around(1, 0.1, 1, 25), around(1, 0.1, 2, 25)));
}

/// Memory has another placement in every process: each process changes the time of each schedule except the
/// default by a random factor.
struct Luck : Replay {
  Luck(const World& world, double sigma, uint64_t seed)
      : Replay(world.landscape, world.known),
        sigma(sigma),
        seed(seed),
        byDefault(world.landscape.byDefault()) {}
  void renew() override { ++process; }
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
    std::vector<Samples> samples = Replay::race(points, rounds);
    for (size_t i = 0; i < points.size(); ++i)
      for (double& each : samples[i]) each *= points[i] == byDefault ? 1 : factor(points[i]);
    return samples;
  }
  double factor(size_t point) const {
    if (process <= 1 && first) return first;
    std::mt19937_64 random(seed * 1000 + uint64_t(process) * 100 + point);
    return std::exp(sigma * std::normal_distribution<double>()(random));
  }
  double sigma, first = 0;  ///< first: of all points in screening and in the race's first process
  uint64_t seed;
  int process = 0;
  size_t byDefault;
};

/// A race that one process holds.
SearchOptions shortRace() {
  SearchOptions options;
  options.leastRounds = options.mostRounds = 10;
  return options;
}

TEST(Search, ARaceIsHeldByManyProcesses) {
  const World world = worldOf(4, [](int i, int j) { return i + j == 1 ? 0.9e-3 : 1e-3; }, 0.005, 24);
  SearchOptions options;
  Luck lab(world, 0.05, 5);
  const Outcome outcome = search(world.landscape, lab, options);
  EXPECT_GE(lab.process, options.mostRounds / 10 + options.confirmations);
  EXPECT_FALSE(outcome.decision.tie);
  EXPECT_NEAR(world.truth[outcome.decision.chosen], 0.9e-3, 1e-6) << "others were luckier here and there";
}

TEST(Confirmation, AWinOfOneProcessAloneIsATie) {
  const World world = worldOf(4, [](int, int) { return 1e-3; }, 0.005, 21);
  Luck lab(world, 0, 1);
  lab.first = 0.9;
  const Outcome outcome = search(world.landscape, lab, shortRace());
  EXPECT_LT(outcome.decision.leaderRatio.value, 0.92);
  EXPECT_TRUE(outcome.decision.tie);
  EXPECT_EQ(outcome.decision.chosen, 0u);
  EXPECT_EQ(outcome.decision.ratio.value, 1);
  EXPECT_TRUE(outcome.confirmation.empty());
}

TEST(Confirmation, ItsRoundsGiveTheRatio) {
  const World world = worldOf(4, [](int i, int j) { return i + j ? 0.9e-3 : 1e-3; }, 0.005, 22);
  Luck lab(world, 0, 1);
  lab.first = 0.9;
  const SearchOptions options = shortRace();
  const Outcome outcome = search(world.landscape, lab, options);
  EXPECT_FALSE(outcome.decision.tie);
  EXPECT_NEAR(outcome.decision.ratio.value, 0.9, 0.005) << "not 0.81, which was luck";
  ASSERT_EQ(outcome.confirmation.size(), 2u);
  EXPECT_EQ(outcome.confirmation[1].point, outcome.decision.chosen);
  EXPECT_EQ(outcome.confirmation[0].samples.size(), size_t(options.confirmations * options.confirmingRounds));
}

TEST(Confirmation, ProcessesThatDisagreeAreATieAndOneOfManyIsNot) {
  const World world = worldOf(3, bowl, 0, 1);
  const Decision won{4, false, {0.9, 0.89, 0.91}, 4, {0.9, 0.89, 0.91}};
  const Decision yes = confirmed(world.landscape, won, {0.9, 0.92});
  EXPECT_FALSE(yes.tie);
  EXPECT_NEAR(yes.ratio.value, 0.91, 1e-9) << "the mean of what they found";
  EXPECT_NEAR(yes.ratio.high, 0.93, 1e-9) << "and two standard errors";
  const Decision no = confirmed(world.landscape, won, {0.8, 1.01});
  EXPECT_TRUE(no.tie);
  EXPECT_EQ(no.chosen, 0u);
  EXPECT_EQ(no.leader, 4u) << "the one in front is still said";
  Samples many(14, 0.9);
  many.push_back(1.002);
  EXPECT_FALSE(confirmed(world.landscape, won, many).tie);
}

TEST(Confirmation, TheMeanOfProcessesLiesWithinTwoStandardErrors) {
  const Ratio ratio = meanRatio({0.9, 1.0, 1.1, 1.0});
  EXPECT_NEAR(ratio.value, 1, 1e-12);
  EXPECT_NEAR(ratio.high - 1, 2 * std::sqrt(0.02 / 3 / 4), 1e-12);
  EXPECT_NEAR(1 - ratio.low, ratio.high - 1, 1e-12);
  EXPECT_EQ(meanRatio({0.9}).low, meanRatio({0.9}).high);
}

TEST(Confirmation, AWinThatAnInterruptLeavesUnconfirmedIsATie) {
  const World world = worldOf(4, [](int i, int j) { return i + j ? 0.8e-3 : 1e-3; }, 0.005, 22);
  for (const int processes : {1, 2}) {  // the race is of the first
    struct Stopping : Luck {
      using Luck::Luck;
      bool stopped() override { return process >= last; }
      int last = 0;
    } lab(world, 0, 1);
    lab.last = processes;
    const Outcome outcome = search(world.landscape, lab, shortRace());
    EXPECT_FALSE(outcome.complete);
    EXPECT_LT(outcome.decision.leaderRatio.value, 0.9);
    EXPECT_TRUE(outcome.decision.tie) << processes - 1 << " processes confirmed it";
    EXPECT_EQ(outcome.decision.ratio.high, 1);
  }
  EXPECT_TRUE(confirmed(world.landscape, {4, false, {0.9, 0.89, 0.91}, 4, {0.9, 0.89, 0.91}}, {0.9}).tie);
}

/// Counts the processes that a search starts in a lab without random factors.
TEST(Confirmation, GoesOnWhereAGainIsNearTheLimitAndTheBudgetLasts) {
  const auto processes = [](double gain, double budget) {
    const World world = worldOf(
        2, [&](int i, int j) { return 1e-3 * (i + j == 1 ? 1 - gain : 1 + 0.1 * (i + j)); }, 0.005, 31);
    Luck lab(world, 0.002, 3);
    SearchOptions options = shortRace();
    options.budget = budget;
    search(world.landscape, lab, options);
    return lab.process - 1;
  };
  const SearchOptions options;
  EXPECT_EQ(processes(0.2, 20), options.confirmations);
  EXPECT_GT(processes(0.02, 20), options.confirmations);
  EXPECT_LE(processes(0.02, 20), options.mostConfirmations);
  EXPECT_LT(processes(0.02, 0.7), processes(0.02, 20)) << "the budget is spent";
  EXPECT_EQ(processes(0.02, 0.1), 0) << "it was spent before: nothing else begins";
}

TEST(Confirmation, IsDecidedByHowMuchProcessesDiffer) {
  const World world = worldOf(3, bowl, 0, 1);
  const Decision won{4, false, {0.9, 0.89, 0.91}, 4, {0.9, 0.89, 0.91}};
  const auto open = [&](const Samples& each) { return undecided(world.landscape, won, each); };
  EXPECT_FALSE(open({0.97, 0.971, 0.969}));
  EXPECT_TRUE(open({0.96, 0.99, 0.96}));
  EXPECT_TRUE(open({0.979, 0.979})) << "too near, however alike";
  EXPECT_TRUE(open({0.979, 1.01})) << "one found it slower: that is no answer yet";
  EXPECT_FALSE(open({1.011, 1.01})) << "it has lost";
}

/// Fails in the first process of a confirmation.
struct Failing : Luck {
  using Luck::Luck;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
    std::vector<Samples> samples = Luck::race(points, rounds);
    if (process == 2) samples[gone].clear();
    return samples;
  }
  size_t gone = 1;
};

TEST(Confirmation, ACandidateThatFailsInItIsNotChosen) {
  const World world = worldOf(4, [](int i, int j) { return j == 1 && i == 0 ? 0.9e-3 : 1e-3; }, 0.005, 23);
  Failing lab(world, 0, 1);
  const Outcome outcome = search(world.landscape, lab, shortRace());
  EXPECT_TRUE(outcome.decision.tie);
  EXPECT_EQ(outcome.failure, "");
  lab.process = 0, lab.gone = 0;
  EXPECT_EQ(search(world.landscape, lab, shortRace()).failure,
            "it failed in the race, after it had passed the gate");
}

TEST(Confirmation, AWinnerThatIsNotConfirmedLeavesItsPlaceToTheNext) {
  const World world = worldOf(4, [](int i, int j) { return i + j == 1 ? 0.88e-3 : 1e-3; }, 0.005, 26);
  Failing lab(world, 0, 1);
  SearchOptions options = shortRace();
  options.exhaustive = options.keepAll = true;
  const Outcome outcome = search(world.landscape, lab, options);
  EXPECT_FALSE(outcome.decision.tie);
  EXPECT_NEAR(outcome.decision.ratio.value, 0.88, 0.005);
  EXPECT_EQ(lab.process, 1 + 1 + options.confirmations);
}

/// Tunes each of many problems five times, and returns how many are decided the same way every time. Their
/// best schedules gain from nothing to 8 %, and each process changes the time of a schedule by 0.4 %.
int agreements(int confirmations, int problems, bool keepChoice) {
  int agreed = 0;
  for (int k = 0; k < problems; ++k) {
    const double gain = 0.08 * k / problems;
    std::set<bool> ties;
    SearchOptions options;
    options.leastRounds = options.mostRounds = 20;
    options.confirmations = confirmations;
    if (!confirmations) options.mostConfirmations = 0;
    for (uint64_t tuning = 0; tuning < 5; ++tuning) {
      const World world = worldOf(
          2, [&](int i, int j) { return 1e-3 * (i + j == 1 ? 1 - gain : 1 + 0.1 * (i + j)); }, 0.01,
          1000 * uint64_t(k) + tuning, 0.01);
      Luck lab(world, 0.004, 100 * uint64_t(k) + tuning);
      lab.first = lab.factor(1);
      const Outcome outcome = search(world.landscape, lab, options);
      ties.insert(outcome.decision.tie);
      if (keepChoice) options.incumbent = outcome.decision.chosen;
    }
    agreed += ties.size() == 1;
  }
  return agreed;
}

TEST(Confirmation, FiveTuningsAgreeMoreOften) {
  const int without = agreements(0, 24, false), with = agreements(4, 24, false);
  EXPECT_GT(with, without);
  EXPECT_GE(with, 23)
      << "of 24, whose gains lie evenly around the limit: without common records some must differ";
}

TEST(Confirmation, RecordsKeepATaskFromChangingSides) { EXPECT_EQ(agreements(4, 24, true), 24); }

TEST(Decision, WhatWasDecidedBeforeIsKeptWhereItIsClose) {
  const World world = worldOf(3, bowl, 0, 1);
  const auto decided = [&](double seconds, std::optional<size_t> incumbent) {
    return decide(world.landscape, {{0, around(1, 0.002, 1)}, {4, around(seconds, 0.002, 2)}}, incumbent)
        .chosen;
  };
  EXPECT_EQ(decided(0.975, {}), 4u);
  EXPECT_EQ(decided(0.975, 0), 0u) << "it was a tie, and 2.5 % is not enough to change that";
  EXPECT_EQ(decided(0.965, 0), 4u);
  EXPECT_EQ(decided(0.985, {}), 0u);
  EXPECT_EQ(decided(0.985, 4), 4u) << "it won, and 1.5 % is enough to keep that";
  EXPECT_EQ(decided(0.995, 4), 0u);
}

TEST(Decision, TheIncumbentStaysAmongThoseThatAreEquallyFast) {
  const World world = worldOf(3, bowl, 0, 1);
  const std::vector<Racer> racers{
      {0, around(1, 0.005, 1)}, {4, around(0.8, 0.005, 2)}, {1, around(0.803, 0.005, 3)}};
  EXPECT_EQ(decide(world.landscape, racers).chosen, 1u);
  EXPECT_EQ(decide(world.landscape, racers, 4).chosen, 4u);
}

TEST(Remembered, TellsRecordsOfOneTaskAndDeviceFromOthers) {
  const World world = worldOf(2, bowl, 0, 1);
  Record record;
  record.task = {*parseProblemText("p:forward@f32[*x1]"), "n", 1, 1, 1, 1, "warm"};
  record.generator = "mlir", record.schedule = "i=0,j=1", record.samples = {1}, record.reference = {2};
  Record other = record;
  other.task.rows = 2;
  Record elsewhere = record;
  elsewhere.device.name = "another";
  Record wrong = record;
  wrong.schedule = "i=1,j=1", wrong.status = Status::Wrong, wrong.samples = wrong.reference = {};
  Setting setting;
  setting.task = record.task;
  const auto known = rememberedFrom(world.landscape, {record, other, elsewhere, wrong, record}, setting);
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known.at(1).samples.size(), 2u);
  EXPECT_EQ(known.at(3).status, Status::Wrong);
}

TEST(Remembered, TheNewestTrialSaysWhetherAPointWasRejected) {
  const World world = worldOf(2, bowl, 0, 1);
  Record right, wrong;
  right.generator = wrong.generator = "mlir", right.schedule = wrong.schedule = "i=0,j=1";
  right.samples = {1}, right.reference = {2}, wrong.status = Status::Wrong;
  const auto status = [&](int64_t stampOfRight, int64_t stampOfWrong) {
    right.stamp = stampOfRight, wrong.stamp = stampOfWrong;
    const Status one = rememberedFrom(world.landscape, {right, wrong}, {}).at(1).status;
    EXPECT_EQ(rememberedFrom(world.landscape, {wrong, right}, {}).at(1).status, one);
    return one;
  };
  EXPECT_EQ(status(2, 1), Status::Ok);
  EXPECT_EQ(status(1, 2), Status::Wrong);
  EXPECT_EQ(status(0, 0), Status::Wrong) << "it is not known which is newer";
}

}  // namespace
}  // namespace normc::tune
