#include "dsl/Problem.h"

#include <cassert>

#include "runtime/abi/Sizes.h"

namespace normc {

ProblemText Problem::parts() const {
  return {spec->name,       entry, data, params,   output,  stream, layout, segmented, mask,
          roundsNormalized, {},    {},   features, bindings};
}

ElementTypes Problem::types() const {
  ElementTypes types = parts().types();
  if (!spec->quantize) return types;
  types.codes = spec->quantize->type();
  types.scales = spec->quantize->powerOfTwo ? DType::E8M0 : DType::F32;
  return types;
}

int64_t Problem::groups(const Groups& groups) const {
  if (groups.binding.empty()) return groups.count;
  const auto bound = bindings.find(groups.binding);
  assert(bound != bindings.end() && "only for a checked Problem");
  return bound->second;
}

int64_t Problem::pairs(int64_t features) const {
  if (!spec->rope) return 0;
  return spec->rope->features.value_or(features / groups(spec->rope->groups)) / 2;
}

int64_t Problem::featuresMultiple() const {
  return package::commonMultiple({groups(spec->groups), spec->pre ? groups(spec->pre->groups) : 1,
                                  spec->rope ? 2 * groups(spec->rope->groups) : 1,
                                  spec->isQuantizedPer(QuantizePer::Block) ? spec->quantize->size : 1});
}

}  // namespace normc
