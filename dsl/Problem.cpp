#include "dsl/Problem.h"

#include <cassert>

namespace normc {

ProblemText Problem::parts() const {
  return {spec->name, entry, data, params, layout, segmented, mask, {}, {}, features, bindings};
}

int64_t Problem::groups(const Groups& groups) const {
  if (groups.binding.empty()) return groups.count;
  const auto bound = bindings.find(groups.binding);
  assert(bound != bindings.end() && "only for a checked Problem");
  return bound->second;
}

}  // namespace normc
