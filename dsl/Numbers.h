// The numbers of a spec: the values that a kernel takes as scalar arguments.
//
// One kernel serves every value. A package records the defaults, and a plan may override each by name.
#pragma once

#include <string>
#include <vector>

#include "dsl/Spec.h"
#include "runtime/abi/Numbers.h"
#include "runtime/abi/Types.h"

namespace normc {

struct Number {
  std::string name;
  double value;       ///< the default that the spec gives
  NumberRange legal;  ///< what keeps the rules C22 to C26 and C33
};

/// Rule P8: the least epsilon of `mode = outside` that is added to a root in f32.
inline constexpr double kLeastOutside = 1e-11;

/// Returns the numbers of `spec` as rule P8 limits them where statistics have that type.
std::vector<Number> numbers(const Spec& spec, DType statistics);

/// Returns the numbers that the spec has, in this order: epsilon, pre_epsilon, decay, backward_decay,
/// clamp_gamma, warmup_steps, renorm_rmax, renorm_dmax, renorm_start, scale_offset, mod_offset,
/// quant_floor.
std::vector<Number> numbers(const Spec&);

}  // namespace normc
