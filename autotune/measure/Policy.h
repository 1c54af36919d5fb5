// In which state of the caches a call is timed. A schedule that is best in one need
// not be best in another, so the policy is part of what a record is for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace normc::measure {

enum class Policy {
  Warm,      ///< the same buffers again and again
  Cold,      ///< buffers in turn, together more than twice the last cache: nothing is found in it
  Pipeline,  ///< as Warm, and the time of whoever reads the output next is part of it
};
std::string_view name(Policy);
std::optional<Policy> findPolicy(std::string_view name);

/// Sets of buffers that a policy needs, where one takes `bytesOfSet`. At least 1; no more than fit into
/// `memory` bytes.
int setsFor(Policy, int64_t bytesOfSet, int64_t lastCache, int64_t memory);

}  // namespace normc::measure
