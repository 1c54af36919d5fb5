// The interface through which a search measures: a machine with its clock, or records.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// The result of screening one candidate.
struct Screened {
  size_t point = 0;
  Status status = Status::Ok;
  std::string reason = {};  ///< unless Ok
  Samples samples = {};     ///< seconds of one call
  Samples reference = {};   ///< of the default, in the same rounds
  bool remembered = false;  ///< from records, not measured now
  bool mayPass = false;     ///< it failed through the machine's fault: no record keeps that

  double ratio() const { return measure::medianRatio(samples, reference); }
};

class Lab {
 public:
  virtual ~Lab() = default;
  /// Returns seconds since the search began, by a monotonic clock: a real or a simulated one.
  virtual double now() = 0;
  /// True if the search should end with the results that it has.
  virtual bool stopped() = 0;
  /// Calls that follow return at this time of now() with what they have: candidates that were screened,
  /// rounds that were complete. The first candidate and the first round of a call are exempt.
  virtual void endBy(double /*time*/) {}
  /// Announces the candidates that are likely to be screened next, in their order, in place of those that
  /// were announced before: they may be compiled meanwhile.
  virtual void announce(const std::vector<size_t>& /*points*/) {}
  /// Compiles, judges and briefly times candidates, in this order; returns fewer if it is stopped or its time
  /// is over. The first call is for the default alone.
  virtual std::vector<Screened> screen(const std::vector<size_t>& points) = 0;
  /// Returns the ratio of the rows of the task to those that are screened: above 1 where tensors are so large
  /// that fewer rows are out of the caches too.
  virtual double scale() { return 1; }
  /// Times `rounds` rounds of all points, interleaved, with the rows that are screened.
  virtual std::vector<Samples> heat(const std::vector<size_t>& points, int rounds) {
    return race(points, rounds);
  }
  /// Times `rounds` rounds of all points, interleaved; fewer if it is stopped or its time is over. An empty
  /// sample set: that point failed now.
  virtual std::vector<Samples> race(const std::vector<size_t>& points, int rounds) = 0;
  /// Returns how a point failed in a race; null if it did not.
  virtual const Screened* failed(size_t /*point*/) const { return nullptr; }
  /// Later measurements use another process, so that its memory has other addresses.
  virtual void renew() {}
  /// Returns about how many seconds a renewed process takes until its first round; 0 if none was seen yet.
  virtual double startSeconds() { return 0; }
};

}  // namespace normc::tune
