// Threads of our own, for calls that last microseconds.
//
// Who calls works itself and never waits for help to come, only for help that is
// under way. Workers that had work a moment ago look for more before they sleep, and
// join at once. Sleeping ones are woken when a call, or several that follow each other,
// has lasted about as long as waking takes the caller: a short call by itself never pays for it, a long one little.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/normc.h"

namespace normc::runtime {

class Pool {
 public:
  /// At most so many threads besides those that call; fewer where the system gives no more.
  explicit Pool(int workers);
  /// No call may be under way. In a forked child, where the threads do not exist, it leaves them alone.
  ~Pool();
  Pool(const Pool&) = delete;

  int workers() const { return static_cast<int>(workers_.size()); }

  /// Calls task(data, i) once for each i in [0, count), on the calling thread and at most `limit` - 1 others, and
  /// returns when all have returned. From any thread, also several at a time, and in a forked child; not from within a task.
  void run(int64_t count, int64_t limit, normc_task task, void* data);

 private:
  struct Job;
  struct Worker;

  /// Hands the job to workers that are free, the sleeping ones too or not, until `wanted` have it.
  void offer(Job&, int64_t wanted, bool wake);
  /// Takes it back from who has not begun, and waits for the others.
  void finish(Job&);

  /// Does the job's chunks, and wakes who sleeps once that pays.
  void workAlone(Job&, int64_t count, int64_t wanted);

  std::vector<std::unique_ptr<Worker>> workers_;
  /// Nanoseconds that callers without all the help they wanted worked, in calls that followed each other, and when the last
  /// of them ended. Callers at the same time may lose each other's: it decides about speed alone.
  std::atomic<int64_t> alone_ = 0, lastAlone_ = 0;
  pid_t process_;
};

}  // namespace normc::runtime
