#include "autotune/measure/Policy.h"

#include <algorithm>

#include "dsl/Nearest.h"

namespace normc::measure {

std::string policyNames() { return oneOf({kPolicyNames.begin(), kPolicyNames.end()}); }

std::optional<Policy> findPolicy(std::string_view text) {
  for (const Policy policy : {Policy::Warm, Policy::Cold, Policy::Pipeline})
    if (text == name(policy)) return policy;
  return std::nullopt;
}

int setsFor(Policy policy, int64_t bytesOfSet, int64_t lastCache, int64_t memory) {
  if (policy != Policy::Cold) return 1;
  const int64_t size = std::max<int64_t>(bytesOfSet, 1), wanted = 2 * lastCache / size + 1;
  return int(std::clamp<int64_t>(wanted, 2, std::clamp<int64_t>(memory / 2 / size, 2, 4096)));
}

}  // namespace normc::measure
