// Whether a sample was disturbed: by the clock of the processor, by a hypervisor that
// took it away, or by another program on our core.
//
// A short loop of arithmetic, whose time nothing of ours can change, runs before and
// after; and the system counts how often we were put off our core meanwhile.
#pragma once

#include <functional>

namespace normc::measure {

class Quiet {
 public:
  /// Finds how fast the loop can be here.
  Quiet();

  /// Takes a sample until one is undisturbed, at most `attempts` times; the last one counts in any case.
  double sample(const std::function<double()>& take, int attempts = 3);
  int disturbed() const { return disturbed_; }  ///< samples thrown away

  /// The rule: the loop at either end took more than 5 % longer than it can, or somebody took the core.
  static bool isDisturbed(double before, double after, double best, long switches);

 private:
  double loop();

  double best_ = 0;
  int disturbed_ = 0;
};

}  // namespace normc::measure
