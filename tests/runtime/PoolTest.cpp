// Threads of our own, apart from any kernel.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "runtime/threads/Pool.h"
#include "runtime/threads/WorkShares.h"

namespace normc::runtime {
namespace {

using namespace std::chrono_literals;

std::vector<int64_t> drawn(WorkShares& shares, int64_t thread) {
  std::vector<int64_t> chunks;
  shares.draw(thread, [&](int64_t chunk) { chunks.push_back(chunk); });
  return chunks;
}

TEST(WorkShares, BeginWithTheirOwnAndGoOnWithOthers) {
  WorkShares two(7, 2);
  EXPECT_FALSE(two.allDrawn());
  EXPECT_EQ(drawn(two, 1), (std::vector<int64_t>{4, 5, 6, 0, 1, 2, 3}));
  EXPECT_TRUE(two.allDrawn());
  EXPECT_EQ(drawn(two, 0), std::vector<int64_t>());
  WorkShares first(7, 2);
  EXPECT_EQ(drawn(first, 0), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(WorkShares, AreTheSameInDescendingOrder) {
  WorkShares one(7, 2, ChunkOrder::Descending), other(7, 2, ChunkOrder::Descending);
  EXPECT_EQ(drawn(one, 1), (std::vector<int64_t>{6, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(drawn(other, 0), (std::vector<int64_t>{3, 2, 1, 0, 6, 5, 4}));
}

TEST(WorkShares, OfMoreThreadsThanChunksOrShares) {
  for (const auto& [chunks, threads] : {std::pair{3, 16}, {1000, 200}, {1, 1}}) {
    WorkShares shares(chunks, threads);
    std::vector<int64_t> all = drawn(shares, threads - 1);
    std::ranges::sort(all);
    std::vector<int64_t> expected(chunks);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  }
}

/// Work that counts how often each task ran, and how many ran at once.
struct Work {
  explicit Work(int64_t count, std::chrono::microseconds each = {}) : times(count), each(each) {}

  static void task(void* self, int64_t i) {
    Work& work = *static_cast<Work*>(self);
    const int now = ++work.running;
    for (int most = work.most; most < now && !work.most.compare_exchange_weak(most, now);) {
    }
    for (const auto end = std::chrono::steady_clock::now() + work.each;
         std::chrono::steady_clock::now() < end;) {
    }
    if (std::this_thread::get_id() != work.caller) ++work.helped;
    ++work.times[i];
    --work.running;
  }
  void on(Pool& pool, int64_t limit) {
    caller = std::this_thread::get_id();
    pool.run(static_cast<int64_t>(times.size()), limit, task, this);
    for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(times[i], 1) << i;
    EXPECT_LE(most, limit);
    EXPECT_EQ(running, 0);
  }

  std::vector<std::atomic<int>> times;
  std::chrono::microseconds each;
  std::thread::id caller;
  std::atomic<int> running = 0, most = 0, helped = 0;
};

TEST(Pool, RunsEachTaskOnceAndNoMoreAtOnceThanAllowed) {
  Pool pool(4);
  ASSERT_EQ(pool.workers(), 4);
  for (int repeat = 0; repeat < 200; ++repeat)
    for (const int64_t count : {1, 2, 3, 17, 300})
      for (const int64_t limit : {2, 3, 5, 64}) Work(count).on(pool, limit);
}

TEST(Pool, WithoutWorkersLetsTheCallerDoAll) {
  Pool pool(0);
  Work work(10);
  work.on(pool, 4);
  EXPECT_EQ(work.helped, 0);
}

TEST(Pool, WakesWhoSleepsForLongWork) {
  Pool pool(1);
  int helped = 0;
  for (int attempt = 0; attempt < 20 && !helped; ++attempt) {
    std::this_thread::sleep_for(20ms);  // the worker sleeps after one
    Work work(100, 300us);
    work.on(pool, 2);
    helped = work.helped;
  }
  EXPECT_GT(helped, 0);
}

TEST(Pool, WakesWhoSleepsForManyShortCalls) {
  Pool pool(1);
  int helped = 0;
  for (int attempt = 0; attempt < 20 && !helped; ++attempt) {
    std::this_thread::sleep_for(20ms);
    for (int call = 0; call < 1000; ++call) {
      Work work(2, 5us);
      work.on(pool, 2);
      helped += work.helped;
    }
  }
  EXPECT_GT(helped, 0);
}

TEST(Pool, ServesManyCallers) {
  Pool pool(3);
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) Work(1 + repeat % 40).on(pool, 4);
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(Pool, EndsAtAnyMoment) {
  for (int i = 0; i < 50; ++i) {
    Pool pool(3);
    if (i % 2) Work(8).on(pool, 4);
    std::this_thread::sleep_for(i * 50us);  // its workers begin, look for work, or sleep
  }
}

TEST(Pool, LetsAForkedChildWorkAlone) {
  auto pool = std::make_unique<Pool>(2);
  Work(8).on(*pool, 3);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    Work work(50);
    work.on(*pool, 3);
    const bool alone = work.helped == 0;
    pool.reset();
    _exit(alone && !::testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Work(8).on(*pool, 3);
}

/// Signals that threads of this process block which are called so, one number a thread.
std::vector<uint64_t> blockedBy(const std::string& name) {
  std::vector<uint64_t> masks;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(entry.path() / "status");
    bool ours = false;
    for (std::string line; std::getline(status, line);) {
      ours |= line == "Name:\t" + name;
      if (ours && line.starts_with("SigBlk:\t")) masks.push_back(std::stoull(line.substr(8), nullptr, 16));
    }
  }
  return masks;
}

TEST(Pool, LeavesSignalsToTheHost) {
  Pool pool(2);
  std::vector<uint64_t> masks;
  for (int wait = 0; wait < 500 && masks.size() < 2; ++wait, std::this_thread::sleep_for(2ms))
    masks = blockedBy("normc");
  ASSERT_EQ(masks.size(), 2u);
  for (const uint64_t mask : masks)
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM, SIGPROF})
      EXPECT_TRUE(mask >> (signal - 1) & 1) << signal;
}

}  // namespace
}  // namespace normc::runtime
