// Whether a sample was disturbed: by the clock of the processor, by a program that took our core away, or by one that
// computes beside us on the same core.
//
// The last is the usual one where a host is shared: the core's other hardware thread belongs to somebody else, and while
// he is busy the units, the first two caches and the store queue are halved. It lasts for milliseconds to seconds, makes
// one kernel twice as slow and another faster, and an average over both worlds says little of either.
//
// Two short loops of arithmetic run before and after, whose time nothing of ours can change; and the system counts how
// often we were put off our core meanwhile.
#pragma once

#include <functional>
#include <limits>

namespace normc::measure {

/// Seconds of two loops, and what the system counted.
struct Loops {
  double waiting = std::numeric_limits<double>::infinity();  ///< each step waits for the last: the clock's frequency
  double filling = std::numeric_limits<double>::infinity();  ///< steps fill all units: what others leave of them
  long interruptions = 0;  ///< so far
};

/// Both, now: some microseconds.
Loops loopsNow();
/// The shorter of either loop.
Loops fastest(const Loops&, const Loops&);

/// Not for several threads at once.
class QuietCoreSampler {
 public:
  /// `patience`: seconds that disturbed samples and waiting may take in all.
  /// `known`: the fastest loops that were seen here, perhaps by another process; it starts with a few of its own.
  explicit QuietCoreSampler(double patience, const Loops& known = {},
                            std::function<Loops()> loops = loopsNow);

  /// Takes samples, and waits between them, until one is undisturbed; without patience any counts.
  double sample(const std::function<double()>& take);
  int disturbed() const { return disturbed_; }  ///< samples thrown away
  const Loops& best() const { return best_; }
  double patience() const { return patience_; }  ///< what is left

  /// The rule: a loop at either end took longer than it can, by 5 % or, filling units, by 15 %; or somebody took the core.
  static bool isDisturbed(const Loops& before, const Loops& after, const Loops& best);

 private:
  std::function<Loops()> loops_;
  Loops best_;
  double patience_;
  int disturbed_ = 0;
};

}  // namespace normc::measure
