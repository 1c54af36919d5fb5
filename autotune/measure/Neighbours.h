// Measures how much processor time other programs used during a measurement.
#pragma once

namespace normc::measure {

/// Counts from its construction on.
class Neighbours {
 public:
  Neighbours();
  /// Returns the number of cores that other programs kept busy since then, on average; 0 if the system does
  /// not report it. `alsoOurs`: seconds of processor time of a helper process that still runs.
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
