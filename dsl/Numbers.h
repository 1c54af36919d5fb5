// The numbers of a spec: what reaches a kernel as scalar arguments.
//
// One kernel serves every value of these; a package records their defaults, and
// a plan may override each by name.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "dsl/Spec.h"

namespace normc {

/// Which values keep the rules C22 to C26, for whoever overrides one.
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

/// In this order, where the spec has them: epsilon, pre_epsilon, decay,
/// backward_decay, clamp_gamma, warmup_steps, renorm_rmax, renorm_dmax, renorm_start.
std::vector<Number> numbers(const Spec&);

}  // namespace normc
