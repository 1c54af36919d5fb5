// Decisions of races, and their confirmation by other processes: same samples, same result.
#include <gtest/gtest.h>

#include <set>

#include "tests/autotune/Worlds.h"

namespace normc::tune {
namespace {

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

TEST(Decision, AScheduleThatOneProcessFoundFasterIsNotClearlySlower) {
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
  lab.process = 0;
  lab.gone = 0;
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

}  // namespace
}  // namespace normc::tune
