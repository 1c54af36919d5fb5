#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "autotune/measure/Contestant.h"

namespace normc::measure {
namespace {

/// Pretends: a call takes `seconds`, and nothing is waited for.
class Pretender : public Contestant {
 public:
  Pretender(double seconds, std::vector<char>& order, char name)
      : seconds_(seconds), order_(order), name_(name) {}
  double run(int64_t calls) override {
    order_.push_back(name_);
    longest_ = std::max(longest_, double(calls) * seconds_);
    return double(calls) * seconds_;
  }
  double longest() const { return longest_; }

 private:
  double seconds_, longest_ = 0;
  std::vector<char>& order_;
  char name_;
};

TEST(Race, GivesSecondsOfOneCallAndEqualRounds) {
  std::vector<char> order;
  Pretender fast(1e-7, order, 'f'), slow(3e-3, order, 's');
  const auto samples = race({&fast, &slow}, {.sampleSeconds = 100e-6, .seconds = 0.1});
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].size(), samples[1].size());
  EXPECT_NEAR(median(samples[0]), 1e-7, 1e-15);
  EXPECT_NEAR(median(samples[1]), 3e-3, 1e-12);
}

TEST(Race, SamplesAreNeverShorterThanTwentyMicroseconds) {
  std::vector<char> order;
  Pretender fast(1e-8, order, 'f');
  race({&fast}, {.sampleSeconds = 0, .seconds = 0.01});
  EXPECT_GE(fast.longest(), 20e-6);
}

TEST(Race, EachContestantFollowsEveryOther) {
  constexpr int kRounds = 60;
  std::vector<char> order;
  Pretender a(1e-3, order, 'a'), b(1e-3, order, 'b'), c(1e-3, order, 'c');
  race({&a, &b, &c},
       {.sampleSeconds = 20e-6, .seconds = 1e-9, .patience = 0, .minRounds = kRounds, .maxRounds = kRounds});
  // Calibration, then rounds of warm-up and sample for each.
  const std::string text(order.end() - kRounds * 3 * 2, order.end());
  std::map<std::pair<char, char>, int> follows;
  for (int round = 0; round < kRounds; ++round) {
    std::set<char> seen;
    for (int at = round * 6; at < round * 6 + 6; at += 2) {
      EXPECT_EQ(text[size_t(at)], text[size_t(at) + 1]);
      EXPECT_TRUE(seen.insert(text[size_t(at)]).second) << "twice in round " << round;
      if (at > 0) ++follows[{text[size_t(at) - 1], text[size_t(at)]}];
    }
  }
  for (const char one : {'a', 'b', 'c'})
    for (const char other : {'a', 'b', 'c'})
      if (one != other) EXPECT_GE((follows[{one, other}]), kRounds / 6) << other << " after " << one;
}

TEST(Race, ContestantsWarmUpForAsLongAsIsAsked) {
  std::vector<char> order;
  Pretender team(1e-5, order, 't');
  race({&team}, {.sampleSeconds = 20e-6, .warmUpSeconds = 2e-3, .seconds = 0.01});
  EXPECT_GE(team.longest(), 2e-3);
}

TEST(Race, ALongCallIsWarmedUpOnlyIfThatIsAsked) {
  const auto runsOfASample = [](double warmUpSeconds) {
    std::vector<char> order;
    Pretender slow(0.05, order, 's');
    Runner runner(slow, 20e-6, warmUpSeconds);
    const size_t before = order.size();
    runner.sample();
    return order.size() - before;
  };
  EXPECT_EQ(runsOfASample(0), 1u);
  EXPECT_EQ(runsOfASample(1e-3), 2u) << "threads that slept are awake in the second";
}

TEST(Race, KeepsToItsTimeButNeverToTooFewRounds) {
  std::vector<char> order;
  Pretender slow(1.0, order, 's');
  const auto samples = race({&slow}, {.sampleSeconds = 20e-6, .seconds = 2, .minRounds = 7, .maxRounds = 41});
  EXPECT_EQ(samples[0].size(), 7u);
}

}  // namespace
}  // namespace normc::measure
