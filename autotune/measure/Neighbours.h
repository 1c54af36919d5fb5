// Whether other programs disturbed a measurement.
#pragma once

namespace normc::measure {

/// Watches the machine from its construction on.
class Neighbours {
 public:
  Neighbours();
  /// How many cores other programs kept busy since then, on average. 0 where the system does not tell.
  /// `alsoOurs`: seconds of processor time of a helper that still runs.
  double busyCores(double alsoOurs = 0) const;

 private:
  struct Clock {
    double machine = 0,
           own = 0;  ///< seconds of processor time: of all programs, of this one and its ended children
    double wall = 0;
  };
  static Clock now();
  Clock begin_;
};

}  // namespace normc::measure
