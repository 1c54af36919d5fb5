// Something whose calls can be timed, and the race that times many of them.
//
// Every round takes one sample of each contestant, and the order turns from round
// to round. Before a sample a contestant warms up untimed, since the others have
// just used the caches, and its threads may sleep; after a sample of one whose idle
// worker threads spin, the race waits until they sleep, so that they do not slow
// down whoever is next.
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
  /// Calls back to back; the seconds that all of them took.
  virtual double run(int64_t calls) = 0;
  /// Which code runs, in words; empty where nobody says.
  virtual std::string implementation() const { return {}; }
  /// Worker threads go on spinning for some milliseconds after a call.
  virtual bool spins() const { return false; }
};

/// Times `call` in this process.
template <typename Call>
double timed(int64_t calls, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One contestant's place in a race: how many calls make a sample long enough, found by doubling when it
/// is made; the first calls also warm up.
class Runner {
 public:
  Runner(Contestant&, double sampleSeconds, double warmUpSeconds = 0);
  /// Seconds of one call, after untimed calls that warm the caches.
  double sample();
  double seconds() const { return seconds_; }  ///< that taking one sample costs, all told

 private:
  void settle() const;

  Contestant* contestant_;
  int64_t calls_ = 1, warmUps_ = 1;
  double seconds_ = 0;
};

struct RaceOptions {
  double sampleSeconds = 200e-6;  ///< a sample is not shorter; at least 20 us
  double warmUpSeconds = 0;       ///< before each sample, at least; a quarter of a sample anyway
  bool ownCores = false;          ///< who calls has a core to itself
  double seconds = 2;             ///< about how long all rounds may take
  double patience = 3;            ///< how often that besides, to wait until nobody else computes on our core
  int minRounds = 7, maxRounds = 41;
};

/// Seconds per call: a set of samples for each contestant, in their order, all of equal length.
std::vector<Samples> race(const std::vector<Contestant*>&, const RaceOptions&);

}  // namespace normc::measure
