// Where a search gets its knowledge from: a machine with its clock, or records.
#pragma once

#include <string>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// What became of one candidate in screening.
struct Screened {
  size_t point = 0;
  Status status = Status::Ok;
  std::string reason = {};  ///< unless Ok
  Samples samples = {};     ///< of one call
  Samples reference = {};   ///< of the default, in the same rounds
  bool remembered = false;  ///< from records, not measured now

  double ratio() const { return measure::medianRatio(samples, reference); }
};

class Lab {
 public:
  virtual ~Lab() = default;
  /// Seconds since the search began, of a clock that never runs back: a real one, or one that only counts.
  virtual double now() = 0;
  /// Whether somebody wants the search to end with what it has.
  virtual bool stopped() = 0;
  /// Makes, judges and briefly times candidates, in this order; fewer come back when it is stopped. The first
  /// call is for the default alone.
  virtual std::vector<Screened> screen(const std::vector<size_t>& points) = 0;
  /// So many rounds of all, in turns; fewer where it is stopped. A sample set that is empty: that one failed now.
  virtual std::vector<Samples> race(const std::vector<size_t>& points, int rounds) = 0;
  /// What follows is measured afresh: by another process, in other memory. Luck with addresses ends here.
  virtual void renew() {}
};

}  // namespace normc::tune
