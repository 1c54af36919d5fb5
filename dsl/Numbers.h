// The numbers of a spec: what reaches a kernel as scalar arguments.
//
// One kernel serves every value of these; a package records their defaults, and
// a plan may override each by name.
#pragma once

#include <string>
#include <vector>

#include "dsl/Spec.h"
#include "runtime/abi/Numbers.h"

namespace normc {

struct Number {
  std::string name;
  double value;  ///< the default that the spec gives
  NumberRange legal;  ///< what keeps the rules C22 to C26
};

/// In this order, where the spec has them: epsilon, pre_epsilon, decay,
/// backward_decay, clamp_gamma, warmup_steps, renorm_rmax, renorm_dmax, renorm_start.
std::vector<Number> numbers(const Spec&);

}  // namespace normc
