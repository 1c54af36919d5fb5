#include "dsl/Numbers.h"

#include "dsl/Check.h"

namespace normc {

std::vector<Number> numbers(const Spec& spec) {
  const NumberRange positive{.above = 0}, notNegative{.least = 0}, decay{.least = 0, .below = 1};
  const NumberRange count{.least = 0, .whole = true}, ratio{.least = 1};
  const bool approximate = spec.backward == Backward::Approximate;
  std::vector<Number> out;
  out.push_back({"epsilon", spec.epsilon, epsilonMayBeZero(spec) ? notNegative : positive});
  if (spec.pre) out.push_back({"pre_epsilon", spec.pre->epsilon, positive});
  if (spec.running) out.push_back({"decay", spec.running->decay, decay});
  if (approximate && spec.approximate.nu != Nu::Window) {
    out.push_back({"backward_decay", spec.approximate.decay, decay});
  }
  if (approximate && spec.approximate.clampGamma) {
    out.push_back({"clamp_gamma", *spec.approximate.clampGamma, positive});
  }
  if (spec.warmup) out.push_back({"warmup_steps", spec.warmup->steps, count});
  if (spec.renorm.kind != Renorm::None) out.push_back({"renorm_rmax", spec.renorm.rmax, ratio});
  if (spec.renorm.kind == Renorm::Std) out.push_back({"renorm_dmax", spec.renorm.dmax, notNegative});
  if (spec.renorm.kind != Renorm::None) out.push_back({"renorm_start", spec.renorm.start, count});
  if (spec.scaleOffset) out.push_back({"scale_offset", *spec.scaleOffset, {}});
  if (spec.modulate && spec.modulate->scale) out.push_back({"mod_offset", spec.modulate->offset, {}});
  if (spec.quantize && spec.quantize->per != QuantizePer::Tensor)
    out.push_back({"quant_floor", spec.quantize->floor, {.least = kLeastFloor}});
  return out;
}

std::vector<Number> numbers(const Spec& spec, DType statistics) {
  std::vector<Number> all = numbers(spec);
  for (Number& number : all)
    if (number.name == "epsilon" && statistics == DType::F32 && spec.epsilonMode == EpsilonMode::Outside &&
        !epsilonMayBeZero(spec))
      number.legal = {.least = kLeastOutside};
  return all;
}

}  // namespace normc
