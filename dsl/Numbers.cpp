#include "dsl/Numbers.h"

namespace normc {

std::vector<Number> numbers(const Spec& spec) {
  const bool approximate = spec.backward == Backward::Approximate;
  std::vector<Number> out;
  out.push_back({"epsilon", spec.epsilon});
  if (spec.pre) out.push_back({"pre_epsilon", spec.pre->epsilon});
  if (spec.running) out.push_back({"decay", spec.running->decay});
  if (approximate && spec.approximate.nu != Nu::Window) {
    out.push_back({"backward_decay", spec.approximate.decay});
  }
  if (approximate && spec.approximate.clampGamma) {
    out.push_back({"clamp_gamma", *spec.approximate.clampGamma});
  }
  if (spec.warmup) out.push_back({"warmup_steps", spec.warmup->steps});
  if (spec.renorm.kind != Renorm::None) out.push_back({"renorm_rmax", spec.renorm.rmax});
  if (spec.renorm.kind == Renorm::Std) out.push_back({"renorm_dmax", spec.renorm.dmax});
  if (spec.renorm.kind != Renorm::None) out.push_back({"renorm_start", spec.renorm.start});
  return out;
}

}  // namespace normc
