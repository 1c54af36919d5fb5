#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Race, TakesTurnsAtBeingFirst) {
  std::vector<char> order;
  Pretender a(1e-3, order, 'a'), b(1e-3, order, 'b');
  race({&a, &b}, {.sampleSeconds = 20e-6, .seconds = 1e-9, .patience = 0, .minRounds = 4, .maxRounds = 4});
  const std::string text(order.begin(), order.end());
  // Calibration, then rounds of warm-up and sample for each: a first, b first, ...
  EXPECT_EQ(text.substr(text.size() - 16), "aabbbbaaaabbbbaa");
}

TEST(Race, ContestantsWarmUpForAsLongAsIsAsked) {
  std::vector<char> order;
  Pretender team(1e-5, order, 't');
  race({&team}, {.sampleSeconds = 20e-6, .warmUpSeconds = 2e-3, .seconds = 0.01});
  EXPECT_GE(team.longest(), 2e-3);
}

TEST(Race, KeepsToItsTimeButNeverToTooFewRounds) {
  std::vector<char> order;
  Pretender slow(1.0, order, 's');
  const auto samples = race({&slow}, {.sampleSeconds = 20e-6, .seconds = 2, .minRounds = 7, .maxRounds = 41});
  EXPECT_EQ(samples[0].size(), 7u);
}

}  // namespace
}  // namespace normc::measure
