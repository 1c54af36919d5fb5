// From x0 to y, and from the gradient of y to that of the affine.
#include "dsl/ReferenceParts.h"

namespace normc::reference {

Tracked factorOf(const Call& call, int64_t feature) {
  const Tracked scale = exact(call.given.scale[feature]);
  return call.spec.scaleOffset ? exact(call.settings.scaleOffset) + scale : scale;
}

Tracked output(const Call& call, int64_t feature, Tracked x0, Tracked r, Tracked shift) {
  const Spec& spec = call.spec;
  Tracked value = x0;
  if (spec.renorm.kind != Renorm::None && spec.renorm.forward) value = r * value + shift;
  if (spec.scale) value = factorOf(call, feature) * value;
  if (spec.bias) value = value + exact(call.given.bias[feature]);
  return value;
}

Tracked gradientOfAffine(const Call&, double dy, int64_t, Tracked, Tracked, Tracked) { return exact(dy); }

}  // namespace normc::reference
