// Something whose calls can be timed, and the race that times many of them.
//
// Every round takes one sample of each contestant, in an order of its own (Order.h). Before a sample the
// contestant runs untimed, because the others have just used the caches and its threads may sleep. After a
// contestant with spinning idle workers, the race waits until they sleep, so that they do not slow down the
// next contestant.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/Stats.h"

namespace normc::measure {

class Contestant {
 public:
  virtual ~Contestant() = default;
  /// Runs calls back to back. Returns the seconds of all of them.
  virtual double run(int64_t calls) = 0;
  /// Returns the name of the code that runs; empty if unknown.
  virtual std::string implementation() const { return {}; }
  /// True if worker threads spin for some milliseconds after a call.
  virtual bool spins() const { return false; }
};

/// Returns a contestant that times `call` in this process.
template <typename Call>
double timed(int64_t calls, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One contestant of a race. The constructor doubles the number of calls in a sample until the sample is long
/// enough; these first calls also warm up. A call that takes 20 ms or more has no untimed calls before it,
/// unless `warmUpSeconds` of them are asked for.
class Runner {
 public:
  Runner(Contestant&, double sampleSeconds, double warmUpSeconds = 0);
  /// Returns the seconds of one call, measured after untimed calls that warm the caches.
  double sample();
  double seconds() const { return seconds_; }  ///< total cost of one sample

 private:
  void settle() const;

  Contestant* contestant_;
  int64_t calls_ = 1, warmUps_ = 1;
  double seconds_ = 0;
};

struct RaceOptions {
  double sampleSeconds = 200e-6;  ///< least seconds of a sample; at least 20 us
  /// Least seconds of untimed calls before each sample, for threads that slept to be awake; at least a
  /// quarter of a sample, unless a call is long.
  double warmUpSeconds = 0;
  bool ownCores = false;  ///< the calling thread has a core to itself
  double seconds = 2;     ///< approximate seconds for all rounds
  double patience = 3;    ///< waiting time for a core without other load, as a multiple of `seconds`
  int minRounds = 7, maxRounds = 41;
};

/// Returns seconds per call: a set of samples for each contestant, in their order, all of equal length.
std::vector<Samples> race(const std::vector<Contestant*>&, const RaceOptions&);

}  // namespace normc::measure
