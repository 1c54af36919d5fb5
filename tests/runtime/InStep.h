// Threads that run in step, as those of a host that executes plans by parts.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/normc.h"

namespace normc::test {

/// Free: all threads run at once. Otherwise one at a time, always in the same order between two barriers, so
/// that a barrier which is missing changes results in every run.
enum class Turns { Free, Ascending, Descending };

/// What each thread saw.
struct InStep {
  std::vector<normc_status> statuses;
  std::vector<std::string> errors;
  std::vector<int> waits;  ///< calls of the barrier

  /// Returns the first status that is not OK.
  normc_status status() const {
    for (const normc_status each : statuses)
      if (each != NORMC_OK) return each;
    return NORMC_OK;
  }
};

class Barrier {
 public:
  Barrier(int count, Turns turns) : turns_(turns), ended_(count) {
    pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(count));
  }
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;

  void begin(int thread) {
    if (turns_ != Turns::Free) waitForTurn(thread);
  }
  void wait(int thread) {
    if (turns_ == Turns::Free) {
      pthread_barrier_wait(&barrier_);
      return;
    }
    pass();
    waitForTurn(thread);
  }
  void end(int thread) {
    if (turns_ == Turns::Free) return;
    {
      const std::scoped_lock lock(mutex_);
      ended_[placeOf(thread)] = true;
    }
    pass();
  }

 private:
  size_t placeOf(int thread) const {
    return turns_ == Turns::Ascending ? size_t(thread) : ended_.size() - 1 - size_t(thread);
  }
  void waitForTurn(int thread) {
    std::unique_lock lock(mutex_);
    passed_.wait(lock, [&] { return turn_ == placeOf(thread); });
  }
  void pass() {
    const std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < ended_.size(); ++i) {
      turn_ = (turn_ + 1) % ended_.size();
      if (!ended_[turn_]) break;
    }
    passed_.notify_all();
  }

  const Turns turns_;
  pthread_barrier_t barrier_;
  std::mutex mutex_;
  std::condition_variable passed_;
  size_t turn_ = 0;
  std::vector<bool> ended_;
};

/// Runs part(ith, barrier, ctx) on `count` threads.
inline InStep inStep(int count, Turns turns,
                     const std::function<normc_status(int ith, normc_barrier barrier, void* ctx)>& part) {
  struct Seat {
    Barrier& barrier;
    int thread, waits;
  };
  InStep result{std::vector<normc_status>(count), std::vector<std::string>(count), std::vector<int>(count)};
  Barrier barrier(count, turns);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      Seat seat{barrier, i, 0};
      barrier.begin(i);
      const auto wait = [](void* ctx) {
        Seat& own = *static_cast<Seat*>(ctx);
        ++own.waits;
        own.barrier.wait(own.thread);
      };
      result.statuses[i] = part(i, wait, &seat);
      if (result.statuses[i] != NORMC_OK) result.errors[i] = normc_last_error();
      result.waits[i] = seat.waits;
      barrier.end(i);
    });
  for (std::thread& thread : threads) thread.join();
  return result;
}

}  // namespace normc::test
