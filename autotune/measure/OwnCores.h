// Pins threads to processors while they are timed.
#pragma once

#include <sched.h>

namespace normc::measure {

/// During its lifetime the calling thread has a processor to itself, and the other threads that the process
/// had before share the rest. Without it, a worker that slept is woken on the caller's core and stays there
/// until the scheduler balances the two, so the first milliseconds on two threads take as long as on one. It
/// does nothing if the process has one processor. Only one object at a time.
class OwnCores {
 public:
  OwnCores();
  ~OwnCores();
  OwnCores(const OwnCores&) = delete;

 private:
  cpu_set_t all_;
};

}  // namespace normc::measure
