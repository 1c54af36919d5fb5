#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "autotune/measure/OwnCores.h"

namespace normc::measure {
namespace {

cpu_set_t allowed(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
  return set;
}

TEST(OwnCores, TheCallerHasOneAndOthersTheRestUntilItEnds) {
  const cpu_set_t before = allowed(0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one processor has nothing to share";
  std::atomic<pid_t> other{0};
  std::atomic<bool> over{false};
  std::thread thread([&] {
    other = gettid();
    while (!over) std::this_thread::yield();
  });
  while (!other) std::this_thread::yield();
  {
    const OwnCores own;
    const cpu_set_t mine = allowed(0), theirs = allowed(other);
    cpu_set_t both;
    CPU_AND(&both, &mine, &theirs);
    EXPECT_EQ(CPU_COUNT(&mine), 1);
    EXPECT_EQ(CPU_COUNT(&theirs), CPU_COUNT(&before) - 1);
    EXPECT_EQ(CPU_COUNT(&both), 0);
  }
  const cpu_set_t mine = allowed(0), theirs = allowed(other);
  EXPECT_TRUE(CPU_EQUAL(&mine, &before));
  EXPECT_TRUE(CPU_EQUAL(&theirs, &before));
  over = true;
  thread.join();
}

}  // namespace
}  // namespace normc::measure
