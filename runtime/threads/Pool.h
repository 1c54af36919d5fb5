// The runtime's own thread pool, for calls that last microseconds.
//
// The calling thread works too. It never waits for a worker to begin, only for workers that have begun.
// Workers that had work a moment ago look for more before they sleep, and join at once. Sleeping workers are
// woken when a call, or several that follow each other, has lasted about as long as a wake-up takes the
// caller: a short call alone never pays for it, and a long one little.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/normc.h"
#include "runtime/threads/WorkShares.h"

namespace normc::runtime {

class Pool {
 public:
  /// Begins at most `workers` threads in addition to those that call; fewer if the system gives no more.
  explicit Pool(int workers);
  /// No call may be running. In a forked child, where the threads do not exist, it does not join them.
  ~Pool();
  Pool(const Pool&) = delete;

  int workers() const { return static_cast<int>(workers_.size()); }

  /// Calls task(data, i) once for each i in [0, count), on the calling thread and at most `limit` - 1 others,
  /// and returns when all have returned. Each thread takes its share in the given order. May be called from
  /// any thread, from several at a time, and in a forked child; not from within a task.
  void run(int64_t count, int64_t limit, normc_task task, void* data,
           ChunkOrder order = ChunkOrder::Ascending);

 private:
  struct Job;
  struct Worker;

  /// Offers the job to free workers, with `wake` also to sleeping ones, until `wanted` have it.
  void offer(Job&, int64_t wanted, bool wake);
  /// Withdraws the job from workers that have not begun, and waits for the others.
  void finish(Job&);

  /// Works on the job's chunks, and wakes sleeping workers once that pays.
  void workAlone(Job&, int64_t count, int64_t wanted);

  std::vector<std::unique_ptr<Worker>> workers_;
  /// Nanoseconds for which callers worked without all wanted workers, in calls that followed each other, and
  /// the end of the last such call. Callers at the same time may overwrite each other's values, which affects
  /// speed only.
  std::atomic<int64_t> alone_ = 0, lastAlone_ = 0;
  pid_t process_;
};

}  // namespace normc::runtime
