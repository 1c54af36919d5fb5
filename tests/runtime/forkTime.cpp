// Measures the cost of a fork of the library's threads: two tasks that compute for some microseconds each, in
// calls that follow each other at once or after a pause.
//
//   normc_fork_time
//
// A line each: the median of what a call took beyond one task's time, and in how many calls the second thread
// helped. On one thread it is the other task's time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "runtime/threads/Pool.h"

namespace {

using Clock = std::chrono::steady_clock;
using Micro = std::chrono::duration<double, std::micro>;

struct Tasks {
  Micro each;
  std::thread::id thread[2] = {};

  static void run(void* self, int64_t i) {
    Tasks& tasks = *static_cast<Tasks*>(self);
    tasks.thread[i] = std::this_thread::get_id();
    for (const auto begin = Clock::now(); Clock::now() - begin < tasks.each;) {
    }
  }
};

void pause(Micro length) {
  if (length > Micro(1000)) return std::this_thread::sleep_for(length);
  for (const auto begin = Clock::now(); Clock::now() - begin < length;) {
  }
}

}  // namespace

int main() {
  normc::runtime::Pool pool(1);
  for (const Micro each : {Micro(5), Micro(20), Micro(100)})
    for (const Micro between : {Micro(0), Micro(20), Micro(500), Micro(20000)}) {
      const int calls = between > Micro(1000) ? 50 : 500;
      std::vector<double> beyond;
      int helped = 0;
      for (int i = 0; i < calls; ++i) {
        pause(between);
        Tasks tasks{each};
        const auto begin = Clock::now();
        pool.run(2, 2, Tasks::run, &tasks);
        beyond.push_back((Micro(Clock::now() - begin) - each).count());
        helped += tasks.thread[0] != tasks.thread[1];
      }
      std::nth_element(beyond.begin(), beyond.begin() + calls / 2, beyond.end());
      std::printf(
          "tasks of %3.0f us, %5.0f us between calls: %6.2f us more than one task, two threads in %d of %d\n",
          each.count(), between.count(), beyond[calls / 2], helped, calls);
    }
}
