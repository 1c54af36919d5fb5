#include "dsl/Spec.h"

namespace normc {
namespace {

template <typename Enum>
std::string code(Enum value) {
  return std::to_string(static_cast<int>(value));
}

// Returns everything that decides the code of a kernel, and nothing else. A field counts only if its flag is
// on. Package files hold hashes of this text: append new flags at the end, only if they are on.
std::string structuralText(const Spec& spec) {
  std::string out = "reduce " + code(spec.reduce);
  const auto add = [&out](const char* key, const std::string& value) {
    out += ";";
    out += key;
    out += " " + value;
  };
  if (spec.perGroup()) {
    add("groups", spec.groups.text());
  }
  add("center", code(spec.center));
  add("moment", code(spec.moment));
  add("divide_by", code(spec.divideBy));
  if (spec.divideBy == DivideBy::Window) {
    add("window", std::to_string(spec.window.size) + " " + code(spec.window.mean));
  }
  if (spec.running) add("running", spec.running->unbiased ? "unbiased" : "biased");
  add("backward", code(spec.backward));
  if (spec.backward == Backward::Approximate) {
    add("nu", code(spec.approximate.nu));
    add("scale", code(spec.approximate.scale));
    if (spec.approximate.clampGamma) add("clamp_gamma", "on");
  }
  if (spec.renorm.kind != Renorm::None) {
    add("renorm", code(spec.renorm.kind) + (spec.renorm.forward ? "" : " backward_only"));
  }
  add("affine", std::string(spec.scale ? "s" : "") + (spec.bias ? "b" : ""));
  add("epsilon", code(spec.epsilonMode));
  if (spec.pre) add("pre", spec.pre->groups.text());
  if (spec.warmup) add("warmup", code(spec.warmup->accumulate));
  add("padding", code(spec.padding));
  if (spec.scaleOffset) add("offset", "on");
  if (spec.activation != Activation::None) add("activation", code(spec.activation));
  if (spec.residual) {
    add("residual", spec.hasResidual(Side::After) ? "after" : spec.residual->stream ? "stream" : "before");
  }
  if (spec.gate) {
    add("gate", code(spec.gate->function) + (spec.hasGate(Side::Before) ? " before " : " after ") +
                    code(spec.gate->per));
  }
  if (const auto& modulate = spec.modulate) {
    add("modulate",
        std::string(modulate->scale ? "s" : "") + (modulate->shift ? "t" : "") + " " + code(modulate->per));
  }
  if (const auto& quantize = spec.quantize) {
    add("quantize", code(quantize->codes) + " " + code(quantize->per) +
                        (quantize->per == QuantizePer::Block ? " " + std::to_string(quantize->size) : "") +
                        (quantize->powerOfTwo ? " power_of_two" : ""));
  }
  if (const auto& rope = spec.rope) {
    add("rope", code(rope->pairs) + " " + rope->groups.text() +
                    (rope->features ? " " + std::to_string(*rope->features) : ""));
  }
  return out;
}

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::string Spec::structuralHash() const {
  const uint64_t hash = fnv1a(structuralText(*this));
  std::string digits(16, '0');
  for (int i = 0; i < 16; ++i) digits[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
  return digits;
}

}  // namespace normc
