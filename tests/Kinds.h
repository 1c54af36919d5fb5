// Kinds of norms, for samples of all built-in norms (tests/Sample.h).
#pragma once

#include <string>

#include "dsl/Spec.h"

namespace normc {

/// Returns the kind of a norm: norms of one kind have the same statistics, state and gradient, and differ in
/// numbers, in their affine and in what stands around them. In the sample of a suite each kind meets what the
/// suite varies, and each norm is there with each entry; suites of their own combine what stands around.
inline std::string kindOf(const Spec& spec) {
  std::string kind;
  for (const int part : {int(spec.reduce), int(spec.groups.isOne()), int(spec.center), int(spec.moment),
                         int(spec.divideBy), int(spec.running.has_value()), int(spec.backward),
                         int(spec.approximate.nu), int(spec.renorm.kind), int(spec.pre.has_value())})
    kind += std::to_string(part);
  return kind;
}

}  // namespace normc
