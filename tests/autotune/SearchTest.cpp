// The search on made-up landscapes, with a clock that only counts: same input, same result.
#include <gtest/gtest.h>

#include <algorithm>

#include "autotune/tune/LiveLab.h"
#include "tests/autotune/Worlds.h"

namespace normc::tune {
namespace {

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
  options.exhaustive = true;
  options.budget = 0.1;
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
  options.incumbent = 80;
  options.leastRounds = options.mostRounds = 10;
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

TEST(Search, AFailureInTheRaceIsTheResultOfItsCandidate) {
  const World world = worldOf(9, bowl, 0.02, 11);
  struct Failing : Replay {
    using Replay::Replay;
    std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
      std::vector<Samples> samples = Replay::race(points, rounds);
      if (points.size() > 2) failure = {.point = points[1], .status = Status::Wrong, .reason = "y differs"};
      for (size_t i = 0; i < points.size(); ++i)
        if (failed(points[i])) samples[i].clear();
      return samples;
    }
    const Screened* failed(size_t point) const override {
      return failure.status != Status::Ok && failure.point == point ? &failure : nullptr;
    }
    Screened failure;
  } lab(world.landscape, world.known);
  const Outcome outcome = search(world.landscape, lab, {});
  ASSERT_EQ(lab.failure.status, Status::Wrong);
  const auto found = std::ranges::find(outcome.screened, lab.failure.point, &Screened::point);
  ASSERT_NE(found, outcome.screened.end());
  EXPECT_EQ(found->status, Status::Wrong);
  EXPECT_EQ(found->reason, "y differs");
  for (const Racer& racer : outcome.racers) EXPECT_NE(racer.point, lab.failure.point);
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
      raced = true;
      return Replay::race(points, 2);
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
  options.incumbent = 5;
  options.mostRounds = 10;
  EXPECT_FALSE(searchIn(worldOf(4, flat, 0.2, 3), options).decided) << "it may still be faster";
  options.mostRounds = 100;
  EXPECT_TRUE(searchIn(worldOf(4, flat, 0.002, 3), options).decided);
  options.incumbent = 0;
  options.mostRounds = 10;
  EXPECT_TRUE(searchIn(worldOf(4, flat, 0.2, 3), options).decided) << "a tie was a tie before";
}

TEST(Search, AWinnerOfTooFewRoundsIsNotConfirmed) {
  const World world = worldOf(4, [](int i, int j) { return i + j ? 0.8e-3 : 1e-3; }, 0.005, 22);
  struct Late : Replay {
    using Replay::Replay;
    double now() override { return Replay::now() + (raced ? 17 : 0); }  // time is left to confirm alone
    std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
      std::vector<Samples> samples = Replay::race(points, raced ? rounds : 2);
      raced = true;
      return samples;
    }
    bool raced = false;
  } lab(world.landscape, world.known);
  const Outcome outcome = search(world.landscape, lab, {});
  EXPECT_TRUE(outcome.complete);
  EXPECT_FALSE(outcome.decided);
  EXPECT_NE(outcome.decision.leader, 0u);
  EXPECT_TRUE(outcome.decision.tie);
  EXPECT_EQ(outcome.decision.chosen, 0u) << "what is not decided is the default";
  EXPECT_TRUE(outcome.confirmation.empty());
}

/// One schedule gains less when it is confirmed than in its race.
struct Disappointing : Replay {
  using Replay::Replay;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override {
    std::vector<Samples> samples = Replay::race(points, rounds);
    const bool confirms = rounds == SearchOptions().confirmingRounds;
    for (size_t i = 0; i < points.size(); ++i)
      if (confirms && points[i] == point)
        for (double& each : samples[i]) each *= factor;
    return samples;
  }
  size_t point = 0;
  double factor = 1;
};

TEST(Search, AnEarlierChoiceIsTakenBackOnlyIfItLostItself) {
  const std::vector<double> truth{1e-3, 0.985e-3, 0.965e-3, 1.2e-3};
  const World world = worldOf(2, [&](int i, int j) { return truth[size_t(2 * i + j)]; }, 1e-4, 14);
  const auto found = [&](size_t earlier, double confirmed) {
    Disappointing lab(world.landscape, world.known);
    lab.point = 2;
    lab.factor = confirmed / truth[2];
    SearchOptions options;
    options.incumbent = earlier;
    Outcome outcome = search(world.landscape, lab, options);
    EXPECT_TRUE(outcome.complete);
    EXPECT_TRUE(outcome.decision.tie);
    return outcome;
  };
  const Outcome outcome = found(1, 0.981e-3);
  EXPECT_FALSE(outcome.decided) << "1.9 % are too little for the leader, and 1.5 % may do for the other";
  EXPECT_EQ(std::ranges::count(outcome.racers, 1u, &Racer::point), 1)
      << "it stays in the race, though it is slower than the leader";
  EXPECT_TRUE(found(2, 0.995e-3).decided) << "half a percent was confirmed";
}

TEST(Search, NoTieTakesBackAWinThatTheLandscapeLacks) {
  const World world = worldOf(6, [](int i, int j) { return 1e-3 * (1 + 0.05 * (i + j)); }, 0.03, 4);
  EXPECT_TRUE(searchIn(world).decided);
  const Outcome outcome = searchIn(world, {.absentWin = true});
  EXPECT_TRUE(outcome.decision.tie);
  EXPECT_FALSE(outcome.decided);
  EXPECT_TRUE(searchIn(worldOf(9, bowl, 0.02, 9), {.absentWin = true}).decided) << "a win may";
}

TEST(Search, NoTieTakesBackAWinThatTheMachineKeptFromTheRace) {
  const World world = worldOf(6, [](int i, int j) { return 1e-3 * (1 + 0.05 * (i + j)); }, 0.03, 4);
  struct Failing : Replay {
    using Replay::Replay;
    std::vector<Screened> screen(const std::vector<size_t>& points) override {
      std::vector<Screened> results = Replay::screen(points);
      for (Screened& one : results)
        if (one.point == 5) one = {.point = 5, .status = Status::Refused, .mayPass = mayPass};
      return results;
    }
    bool mayPass = true;
  };
  const auto decided = [&](bool mayPass) {
    Failing lab(world.landscape, world.known);
    lab.mayPass = mayPass;
    SearchOptions options;
    options.incumbent = 5;
    return search(world.landscape, lab, options).decided;
  };
  EXPECT_FALSE(decided(true));
  EXPECT_TRUE(decided(false)) << "the schedule itself fails";
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
  options.incumbent = 50;
  options.hints = {60, 50};
  options.fromModel = 4;
  options.atRandom = 3;
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

TEST(Remembered, TellsRecordsOfOneTaskAndDeviceFromOthers) {
  const World world = worldOf(2, bowl, 0, 1);
  Record record;
  record.task = {*parseProblemText("p:forward@f32[*x1]"), "n", 1, 1, 1, 1, "warm"};
  record.generator = "mlir";
  record.schedule = "i=0,j=1";
  record.samples = {1};
  record.reference = {2};
  Record other = record;
  other.task.rows = 2;
  Record elsewhere = record;
  elsewhere.device.name = "another";
  Record wrong = record;
  wrong.schedule = "i=1,j=1";
  wrong.status = Status::Wrong;
  wrong.samples = wrong.reference = {};
  Setting setting;
  setting.task = record.task;
  const auto known = rememberedFrom(world.landscape, {record, other, elsewhere, wrong, record}, setting);
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known.at(1).samples.size(), 2u);
  EXPECT_EQ(known.at(3).status, Status::Wrong);
}

TEST(Remembered, TellsOfANewerWinThatTheLandscapeLacks) {
  const World world = worldOf(2, bowl, 0, 1);
  Record here, elsewhere;
  here.kind = elsewhere.kind = RecordKind::Choice;
  here.generator = "mlir";
  elsewhere.generator = "halide";
  here.schedule = elsewhere.schedule = "i=0,j=1";
  here.conclusion = elsewhere.conclusion = Conclusion{Verdict::Won, 0.9, 0.9, 0.9};
  const auto earlier = [&](int64_t stampHere, int64_t stampElsewhere) {
    here.stamp = stampHere;
    elsewhere.stamp = stampElsewhere;
    const std::vector<Record> records{here, elsewhere};
    const Earlier found = choiceOf(world.landscape, records, {});
    EXPECT_EQ(found.choice, &records[0]);
    EXPECT_EQ(found.point, 1u);
    return found.absentWin;
  };
  EXPECT_TRUE(earlier(1, 2));
  EXPECT_FALSE(earlier(2, 1));
  elsewhere.conclusion->verdict = Verdict::Tie;
  EXPECT_FALSE(earlier(1, 2)) << "a tie is the default, which is here";
  EXPECT_FALSE(choiceOf(world.landscape, {}, {}).absentWin);
}

TEST(Remembered, TheNewestTrialSaysWhetherAPointWasRejected) {
  const World world = worldOf(2, bowl, 0, 1);
  Record right, wrong;
  right.generator = wrong.generator = "mlir";
  right.schedule = wrong.schedule = "i=0,j=1";
  right.samples = {1};
  right.reference = {2};
  wrong.status = Status::Wrong;
  const auto status = [&](int64_t stampOfRight, int64_t stampOfWrong) {
    right.stamp = stampOfRight;
    wrong.stamp = stampOfWrong;
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
