#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "autotune/measure/QuietCoreSampler.h"

namespace normc::measure {
namespace {

constexpr Loops kAlone{4e-6, 2e-6}, kSharedCore{4e-6, 4e-6}, kSlowClock{5e-6, 2.1e-6};

/// Returns given loops in order, then the last one again and again. The fifty that a QuietCoreSampler starts
/// with are those of an undisturbed core.
class Told {
 public:
  explicit Told(std::vector<Loops> later) : later_(std::move(later)) {}
  Loops operator()() {
    if (first_-- > 0) return kAlone;
    return next_ + 1 < later_.size() ? later_[next_++] : later_.back();
  }

 private:
  std::vector<Loops> later_;
  size_t next_ = 0;
  int first_ = 50;
};

/// The samples 1, 2, 3, ...
auto counted(int& taken) {
  return [&taken] { return double(++taken); };
}

TEST(Quiet, WhoComputesOnTheOtherThreadOfOurCoreDisturbsThoughTheClockIsTheSame) {
  EXPECT_FALSE(QuietCoreSampler::isDisturbed(kAlone, kAlone, kAlone));
  EXPECT_TRUE(QuietCoreSampler::isDisturbed(kSharedCore, kAlone, kAlone));
  EXPECT_TRUE(QuietCoreSampler::isDisturbed(kAlone, kSharedCore, kAlone));
}

TEST(Quiet, ASlowerClockDisturbsThoughTheUnitsAreOurs) {
  EXPECT_TRUE(QuietCoreSampler::isDisturbed(kAlone, kSlowClock, kAlone));
}

TEST(Quiet, AnInterruptionDisturbs) {
  Loops later = kAlone;
  later.interruptions = 1;
  EXPECT_TRUE(QuietCoreSampler::isDisturbed(kAlone, later, kAlone));
}

TEST(Quiet, WhereACoreIsAlwaysSharedThatIsHowFastItIs) {
  EXPECT_FALSE(QuietCoreSampler::isDisturbed(kSharedCore, kSharedCore, kSharedCore));
}

TEST(Quiet, WaitsNoLongerThanIsSaid) {
  int taken = 0;
  QuietCoreSampler quiet(1e6, {}, Told({kSharedCore}));
  quiet.waitFor(0);
  EXPECT_EQ(quiet.sample(counted(taken)), 1);
  EXPECT_EQ(quiet.disturbed(), 0);
  EXPECT_EQ(quiet.accepted(), 1) << "though it was disturbed, and patience is left";
}

TEST(Quiet, TakesASampleAgainWhenTheNeighbourIsGone) {
  int taken = 0;
  QuietCoreSampler quiet(1, {}, Told({kAlone, kSharedCore, kSharedCore, kSharedCore, kAlone}));
  EXPECT_EQ(quiet.sample(counted(taken)), 2) << "busy after the first sample and twice while waiting";
  EXPECT_EQ(quiet.disturbed(), 1);
  EXPECT_LT(quiet.patience(), 1);
  EXPECT_EQ(quiet.sample(counted(taken)), 3);
  EXPECT_EQ(quiet.disturbed(), 1);
  EXPECT_EQ(quiet.accepted(), 0);
}

TEST(Quiet, WithoutPatienceAnySampleCounts) {
  int taken = 0;
  QuietCoreSampler quiet(0, {}, Told({kSharedCore}));
  EXPECT_EQ(quiet.sample(counted(taken)), 1);
  EXPECT_EQ(quiet.accepted(), 1);
}

TEST(Quiet, PatienceEnds) {
  int taken = 0;
  QuietCoreSampler quiet(0.02, {}, Told({kSharedCore}));
  quiet.sample(counted(taken));
  EXPECT_LE(quiet.patience(), 0);
  const int then = taken;
  quiet.sample(counted(taken));
  EXPECT_EQ(taken, then + 1);
}

TEST(Quiet, KnowsFromAnotherProcessHowFastTheLoopsCanBe) {
  int taken = 0;
  QuietCoreSampler quiet(1e-3, {kAlone.waiting / 2, kAlone.filling / 2}, Told({kAlone}));
  quiet.sample(counted(taken));
  EXPECT_GE(quiet.disturbed(), 1) << "half as fast as was seen elsewhere";
  EXPECT_EQ(quiet.best().filling, kAlone.filling / 2);
}

TEST(Quiet, LoopsTakeTime) {
  const Loops now = fastest(loopsNow(), loopsNow());
  EXPECT_GT(now.waiting, 0);
  EXPECT_GT(now.filling, 0);
  EXPECT_LT(std::max(now.waiting, now.filling), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace normc::measure
