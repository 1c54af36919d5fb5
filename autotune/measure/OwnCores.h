// Threads that stay where they are while they are timed.
#pragma once

#include <sched.h>

namespace normc::measure {

/// While it lives, the calling thread has a processor to itself, and the process's other threads, those that were there
/// before, share the rest. A worker that slept is woken on the core of who calls otherwise, and stays there until a tick
/// balances the two: the first milliseconds on two threads are as long as on one. Does nothing where the process has one
/// processor. Not for two at once.
class OwnCores {
 public:
  OwnCores();
  ~OwnCores();
  OwnCores(const OwnCores&) = delete;

 private:
  cpu_set_t all_;
};

}  // namespace normc::measure
