// Threads of our own, for calls that last microseconds.
//
// Who calls works itself and never waits for help to come, only for help that is
// under way. Workers that had work a moment ago look for more before they sleep, and
// join at once. Sleeping ones are woken when a call has lasted about as long as
// waking them takes the caller: a short call never pays for it, and a long one little.
#pragma once

#include <sys/types.h>

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

  std::vector<std::unique_ptr<Worker>> workers_;
  pid_t process_;
};

}  // namespace normc::runtime
