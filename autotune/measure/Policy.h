// The state of the caches in which a call is timed. A schedule that is best in one need not be best in
// another, so a record holds the policy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace normc::measure {

enum class Policy {
  Warm,      ///< the same buffers in every call
  Cold,      ///< buffers in turn, together more than twice the last cache, so that nothing is found in it
  Pipeline,  ///< as Warm, and the time includes a read of the output
};
inline constexpr std::array<std::string_view, 3> kPolicyNames{"warm", "cold", "pipeline"};
inline std::string_view name(Policy policy) { return kPolicyNames[size_t(policy)]; }
/// Returns the names for a message: "warm, cold or pipeline".
std::string policyNames();
std::optional<Policy> findPolicy(std::string_view name);

/// Returns the number of sets of buffers that a policy needs if one set takes `bytesOfSet`: at least 1, and
/// no more than fit into `memory` bytes.
int setsFor(Policy, int64_t bytesOfSet, int64_t lastCache, int64_t memory);

}  // namespace normc::measure
