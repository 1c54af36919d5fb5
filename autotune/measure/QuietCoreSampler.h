// Detects disturbed samples: by the clock of the processor, by a program that took the core away, or by a
// program on the other hardware thread of the core.
//
// The last is usual on a shared host: while the other hardware thread is busy, the units, the first two
// caches and the store queue of the core are halved. It lasts for milliseconds to seconds and makes one
// kernel twice as slow and another faster, so an average over both states means little.
//
// Two short loops of arithmetic run before and after each sample. The measured program cannot change their
// time. The system counts how often the thread lost its core.
#pragma once

#include <chrono>
#include <functional>
#include <limits>

namespace normc::measure {

/// The seconds of the two loops, and the count of the system.
struct Loops {
  /// each step depends on the last: shows the clock frequency
  double waiting = std::numeric_limits<double>::infinity();
  /// steps fill all units of the core: shows use by the other hardware thread
  double filling = std::numeric_limits<double>::infinity();
  long interruptions = 0;  ///< how often the thread lost its core so far
};

/// Measures both loops; takes some microseconds.
Loops loopsNow();
/// Returns the shorter time of each loop.
Loops fastest(const Loops&, const Loops&);

/// Takes undisturbed samples. For one thread at a time.
class QuietCoreSampler {
 public:
  /// `patience`: seconds that disturbed samples and waiting may take in all. `known`: the fastest loops seen
  /// on this machine, perhaps by another process; the constructor adds a few of its own.
  explicit QuietCoreSampler(double patience, const Loops& known = {},
                            std::function<Loops()> loops = loopsNow);

  /// Takes samples, with pauses, until one is undisturbed. Without patience the first counts.
  double sample(const std::function<double()>& take);
  /// From now on samples are waited for until `seconds` from now at most; then the first counts.
  void waitFor(double seconds);
  void setPatience(double seconds) { patience_ = seconds; }
  int disturbed() const { return disturbed_; }  ///< number of samples that were discarded
  int accepted() const { return accepted_; }    ///< number of disturbed samples that counted all the same
  const Loops& best() const { return best_; }
  double patience() const { return patience_; }  ///< seconds that are left

  /// True if a loop before or after took longer than its best by 5 %, the filling one by 15 %, or if the
  /// thread lost its core.
  static bool isDisturbed(const Loops& before, const Loops& after, const Loops& best);

 private:
  std::function<Loops()> loops_;
  Loops best_;
  double patience_;
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::time_point::max();
  int disturbed_ = 0, accepted_ = 0;
};

}  // namespace normc::measure
