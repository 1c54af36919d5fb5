// The interface through which a search measures: a machine with its clock, or records.
#pragma once

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

  double ratio() const { return measure::medianRatio(samples, reference); }
};

class Lab {
 public:
  virtual ~Lab() = default;
  /// Returns seconds since the search began, by a monotonic clock: a real or a simulated one.
  virtual double now() = 0;
  /// True if the search should end with the results that it has.
  virtual bool stopped() = 0;
  /// Compiles, judges and briefly times candidates, in this order; returns fewer if it is stopped. The first
  /// call is for the default alone.
  virtual std::vector<Screened> screen(const std::vector<size_t>& points) = 0;
  /// Times `rounds` rounds of all points, interleaved; fewer if it is stopped. An empty sample set: that
  /// point failed now.
  virtual std::vector<Samples> race(const std::vector<size_t>& points, int rounds) = 0;
  /// Later measurements use another process, so that its memory has other addresses.
  virtual void renew() {}
};

}  // namespace normc::tune
