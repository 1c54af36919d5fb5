// The legality table of dsl/SPEC.md (rules C5 to C34) as code.
//
// Only a Spec that passes reaches the reference or the compiler, so neither handles combinations without a
// meaning.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/Result.h"
#include "dsl/Spec.h"

namespace normc {

/// The place where a flag was written, and the text of that line.
struct Place {
  Location where;
  std::string line;
};

/// Places by clause ("center") or clause and option ("running.decay"). "" is the norm itself, the place of
/// what is not written; "from" is its base, if it has one.
using Places = std::map<std::string, Place, std::less<>>;

/// Rule C26, as a hint.
inline constexpr const char* kWholeHint = "use a whole number of at most 2^53";

/// Rule C33: the least floor of `quantize`.
inline constexpr double kLeastFloor = 1e-30;
/// Rule C33, as a hint for an option that means nothing for 'per = tensor'.
inline constexpr const char* kGivenScaleHint =
    "the caller gives that scale: leave it out, or write 'per = row'";

/// Rule C23: true if no statistic of this batch divides, so that epsilon may be 0.
bool epsilonMayBeZero(const Spec&);

/// Returns every rule that the spec breaks; empty if it is legal.
std::vector<Diagnostic> checkSpec(const Spec&, const Places& = {});

}  // namespace normc
