// The legality table of dsl/SPEC.md (rules C5 to C26) as code.
//
// Only a Spec that passes reaches the reference or the compiler, so neither has
// to expect a combination without a meaning.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/Result.h"
#include "dsl/Spec.h"

namespace normc {

/// Where a flag was written, and that line.
struct Place {
  Location where;
  std::string line;
};

/// By clause ("center") or clause and option ("running.decay"); "" is the norm
/// itself, which stands in for what is not written.
using Places = std::map<std::string, Place, std::less<>>;

/// C23: whether nothing of this batch divides, so that epsilon may be 0.
bool epsilonMayBeZero(const Spec&);

/// Every rule that the spec breaks; empty where it is legal.
std::vector<Diagnostic> checkSpec(const Spec&, const Places& = {});

}  // namespace normc
