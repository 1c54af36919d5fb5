// The numbers of a spec: the values that a kernel takes as scalar arguments.
//
// One kernel serves every value. A package records the defaults, and a plan may override each by name.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "dsl/Spec.h"

namespace normc {

/// The legal values of a number by the rules C22 to C26, for code that overrides it.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();  ///< this or more
  double above = -std::numeric_limits<double>::infinity();  ///< more than this
  double below = std::numeric_limits<double>::infinity();   ///< less than this
  bool whole = false;
};

struct Number {
  std::string name;
  double value;  ///< the default that the spec gives
  NumberRange legal;
};

/// Returns the numbers that the spec has, in this order: epsilon, pre_epsilon, decay, backward_decay,
/// clamp_gamma, warmup_steps, renorm_rmax, renorm_dmax, renorm_start.
std::vector<Number> numbers(const Spec&);

}  // namespace normc
