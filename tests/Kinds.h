// Kinds of norms, for samples of all built-in norms (tests/Sample.h).
#pragma once

#include <string>

#include "dsl/Spec.h"

namespace normc {

/// Returns the kind of a norm: norms of one kind have the same statistics, state and gradient, all or none of
/// them turn pairs, and all or none have codes. They differ in numbers, in their affine and in what else
/// stands around them. In the sample of a suite each kind meets what the suite varies, and each norm is
/// there; suites of their own combine what stands around.
inline std::string kindOf(const Spec& spec) {
  std::string kind;
  for (const int part :
       {int(spec.reduce), int(spec.groups.isOne()), int(spec.center), int(spec.moment), int(spec.divideBy),
        int(spec.running.has_value()), int(spec.backward), int(spec.approximate.nu), int(spec.renorm.kind),
        int(spec.pre.has_value()), int(spec.running && spec.running->unbiased),
        int(spec.quantize.has_value()), int(spec.rope.has_value())})
    kind += std::to_string(part);
  return kind;
}

}  // namespace normc
