// Threads that make candidates before they are needed.
#include <gtest/gtest.h>

#include <stdexcept>

#include "autotune/tune/MakeAhead.h"

namespace normc::tune::test {
namespace {

constexpr double kForever = 1e9;

/// Makes candidates named after their points, and remembers the order.
struct Maker {
  BuiltCandidate operator()(size_t point) {
    std::unique_lock lock(mutex);
    open.wait(lock, [&] { return !closed; });
    order.push_back(point);
    if (point == fails) throw std::runtime_error("it cannot be made");
    return {std::to_string(point), "object"};
  }
  MakeAhead::Make function() {
    return [this](size_t point) { return (*this)(point); };
  }
  std::mutex mutex;
  std::condition_variable open;
  bool closed = false;
  std::vector<size_t> order;
  size_t fails = size_t(-1);
};

TEST(MakeAhead, ReturnsEachCandidateMadeOnce) {
  Maker maker;
  {
    MakeAhead ahead(maker.function(), 1, 1);
    ahead.announce({1, 2, 3});
    for (const size_t point : {3u, 1u, 2u, 1u})
      EXPECT_EQ(ahead.take(point, kForever)->package, std::to_string(point));
  }
  EXPECT_EQ(maker.order.size(), 3u);
}

TEST(MakeAhead, MakesFirstWhatIsWaitedFor) {
  Maker maker;
  MakeAhead ahead(maker.function(), 0, 1);  // nothing begins before take()
  ahead.announce({1, 2, 3});
  ahead.take(7, kForever);
  const std::lock_guard lock(maker.mutex);
  EXPECT_EQ(maker.order.at(0), 7u);
}

TEST(MakeAhead, ALaterListReplacesAnEarlierOne) {
  Maker maker;
  {
    MakeAhead ahead(maker.function(), 0, 1);
    ahead.announce({1, 2, 3});
    ahead.announce({});
    ahead.take(4, kForever);
  }
  EXPECT_EQ(maker.order, std::vector<size_t>{4});
}

TEST(MakeAhead, GivesUpWhenTheTimeIsOverAndHasTheCandidateLater) {
  Maker maker;
  maker.closed = true;
  MakeAhead ahead(maker.function(), 1, 0);
  EXPECT_FALSE(ahead.take(1, 0.001));
  {
    const std::lock_guard lock(maker.mutex);
    maker.closed = false;
  }
  maker.open.notify_all();
  EXPECT_EQ(ahead.take(1, kForever)->package, "1");
}

TEST(MakeAhead, ThrowsWhatTheMakerThrew) {
  Maker maker;
  maker.fails = 2;
  MakeAhead ahead(maker.function(), 1, 1);
  ahead.announce({1, 2});
  EXPECT_EQ(ahead.take(1, kForever)->package, "1");
  EXPECT_THROW(ahead.take(2, kForever), std::runtime_error);
}

}  // namespace
}  // namespace normc::tune::test
