#include "dsl/Print.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "dsl/EnumWords.h"

namespace normc {
namespace {

// `a, b, c`
std::string list(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
  return out;
}

// `head(a, b)`, or `head` alone
std::string withOptions(const std::string& head, const std::vector<std::string>& options) {
  return options.empty() ? head : head + "(" + list(options) + ")";
}

std::string reduceText(const Spec& spec) {
  std::vector<std::string> options;
  if (!spec.groups.isOne()) options.push_back("groups = " + spec.groups.text());
  return withOptions(wordOf(kReduceWords, spec.reduce), options);
}

std::string divideByText(const Spec& spec) {
  std::vector<std::string> options;
  if (spec.divideBy == DivideBy::Window) {
    options = {std::to_string(spec.window.size), wordOf(kWindowMeanWords, spec.window.mean)};
  }
  return withOptions(wordOf(kDivideByWords, spec.divideBy), options);
}

std::string runningText(const Spec::Running& running) {
  std::vector<std::string> options{"decay = " + numberText(running.decay)};
  if (running.init != Spec::Running{}.init) options.push_back("init = " + numberText(running.init));
  if (running.unbiased) options.push_back("unbiased");
  return list(options);
}

std::string backwardText(const Spec& spec) {
  const Spec::Approximate& nu = spec.approximate;
  std::vector<std::string> options;
  if (spec.backward == Backward::Approximate) {
    if (nu.nu != Nu::Window) options.push_back("decay = " + numberText(nu.decay));
    if (nu.nu != Nu::Feedback) options.push_back("nu = " + wordOf(kNuWords, nu.nu));
    if (nu.scale != BackwardScale::Forward)
      options.push_back("scale = " + wordOf(kBackwardScaleWords, nu.scale));
    if (nu.clampGamma) options.push_back("clamp_gamma = " + numberText(*nu.clampGamma));
  }
  return withOptions(wordOf(kBackwardWords, spec.backward), options);
}

std::string renormText(const Spec::Renormalize& renorm) {
  std::vector<std::string> options;
  if (renorm.kind == Renorm::Std) {
    options = {"rmax = " + numberText(renorm.rmax), "dmax = " + numberText(renorm.dmax)};
    if (renorm.start != 0) options.push_back("start = " + numberText(renorm.start));
  } else {
    options = {"limit = " + numberText(renorm.rmax), "start = " + numberText(renorm.start)};
    if (!renorm.forward) options.push_back("forward = no");
  }
  return withOptions(wordOf(kRenormWords, renorm.kind), options);
}

std::string affineText(const Spec& spec) {
  std::vector<std::string> items, options;
  if (spec.scaleOffset) options.push_back("offset = " + numberText(*spec.scaleOffset));
  if (spec.scale) items.push_back(withOptions("scale", options));
  if (spec.bias) items.push_back("bias");
  return list(items);
}

std::string residualText(const Spec::Residual& residual) {
  std::vector<std::string> options;
  if (!residual.stream) options.push_back("stream = no");
  return withOptions(wordOf(kResidualWords, std::optional(residual.side)), options);
}

std::string gateText(const Spec::Gate& gate) {
  std::vector<std::string> options;
  if (gate.side != Spec::Gate{}.side) options.push_back("at = " + wordOf(kAtWords, gate.side));
  if (gate.per != Spec::Gate{}.per) options.push_back("per = " + wordOf(kPerWords, gate.per));
  return withOptions(wordOf(kGateWords, std::optional(gate.function)), options);
}

std::string modulateText(const Spec::Modulate& modulate) {
  const Spec::Modulate defaults;
  std::vector<std::string> items, options;
  if (modulate.offset != defaults.offset) options.push_back("offset = " + numberText(modulate.offset));
  if (modulate.scale) items.push_back(withOptions("scale", options));
  if (modulate.shift) items.push_back("shift");
  if (modulate.per != defaults.per) items.push_back("per = " + wordOf(kModulatePerWords, modulate.per));
  return list(items);
}

std::string ropeText(const Spec::Rope& rope) {
  std::vector<std::string> options;
  if (!rope.groups.isOne()) options.push_back("groups = " + rope.groups.text());
  if (rope.features) options.push_back("features = " + std::to_string(*rope.features));
  return withOptions(wordOf(kRopeWords, std::optional(rope.pairs)), options);
}

std::string quantizeText(const Spec::Quantize& quantize) {
  const Spec::Quantize defaults;
  std::vector<std::string> options;
  if (quantize.per != defaults.per) options.push_back("per = " + wordOf(kQuantizePerWords, quantize.per));
  if (quantize.size != defaults.size) options.push_back("size = " + std::to_string(quantize.size));
  if (quantize.powerOfTwo) options.push_back("scale = " + wordOf(kQuantizeScaleWords, true));
  if (quantize.floor != defaults.floor) options.push_back("floor = " + numberText(quantize.floor));
  return withOptions(wordOf(kQuantizeWords, std::optional(quantize.codes)), options);
}

std::string epsilonText(const Spec& spec) {
  const std::string value = numberText(spec.epsilon);
  if (spec.epsilonMode == EpsilonMode::Add) return value;
  return value + " (mode = " + wordOf(kEpsilonModeWords, spec.epsilonMode) + ")";
}

std::string preText(const Spec::Pre& pre) {
  std::vector<std::string> options;
  if (!pre.groups.isOne()) options.push_back("groups = " + pre.groups.text());
  if (pre.epsilon != Spec::Pre{}.epsilon) options.push_back("epsilon = " + numberText(pre.epsilon));
  return withOptions("group_scaling", options);
}

std::string warmupText(const Spec::Warmup& warmup) {
  std::vector<std::string> options{"steps = " + numberText(warmup.steps)};
  if (warmup.accumulate != Accumulate::Decay) {
    options.push_back("accumulate = " + wordOf(kAccumulateWords, warmup.accumulate));
  }
  return list(options);
}

}  // namespace

std::string print(const Spec& spec, const std::set<std::string>& kept) {
  const Spec defaults;
  std::string out = "norm " + spec.name + " {\n";
  // Writes a clause that differs from its default, or is kept.
  const auto clause = [&](const std::string& keyword, bool differs, const auto& rest) {
    if (!differs && !kept.contains(keyword)) return;
    std::string column = keyword;
    column.resize(std::max<size_t>(column.size(), 9), ' ');
    out += "  " + column + " " + rest() + "\n";
  };
  // The same for a clause whose default is `none`.
  const auto part = [&](const std::string& keyword, bool present, const auto& rest) {
    clause(keyword, present, [&] { return present ? rest() : std::string("none"); });
  };
  // The clauses of one element stand where their formula does, `none` behind the norm.
  const auto around = [&](Side side) {
    if (spec.hasGate(side) || (side == Side::After && !spec.gate))
      part("gate", spec.gate.has_value(), [&] { return gateText(*spec.gate); });
    if (spec.hasResidual(side) || (side == Side::After && !spec.residual))
      part("residual", spec.residual.has_value(), [&] { return residualText(*spec.residual); });
  };
  around(Side::Before);
  part("pre", spec.pre.has_value(), [&] { return preText(*spec.pre); });
  clause("reduce", true, [&] { return reduceText(spec); });
  clause("center", spec.center != defaults.center, [&] { return wordOf(kCenterWords, spec.center); });
  clause("moment", spec.moment != defaults.moment, [&] { return wordOf(kMomentWords, spec.moment); });
  clause("divide_by", spec.divideBy != defaults.divideBy, [&] { return divideByText(spec); });
  part("running", spec.running.has_value(), [&] { return runningText(*spec.running); });
  part("warmup", spec.warmup.has_value(), [&] { return warmupText(*spec.warmup); });
  part("renorm", spec.renorm.kind != Renorm::None, [&] { return renormText(spec.renorm); });
  clause("backward", spec.backward != defaults.backward, [&] { return backwardText(spec); });
  part("affine", spec.scale || spec.bias, [&] { return affineText(spec); });
  part("modulate", spec.modulate.has_value(), [&] { return modulateText(*spec.modulate); });
  part("rope", spec.rope.has_value(), [&] { return ropeText(*spec.rope); });
  around(Side::After);
  clause("activation", spec.activation != defaults.activation,
         [&] { return wordOf(kActivationWords, spec.activation); });
  part("quantize", spec.quantize.has_value(), [&] { return quantizeText(*spec.quantize); });
  clause("epsilon", spec.epsilon != defaults.epsilon || spec.epsilonMode != defaults.epsilonMode,
         [&] { return epsilonText(spec); });
  clause("padding", spec.padding != defaults.padding, [&] { return wordOf(kPaddingWords, spec.padding); });
  return out + "}\n";
}

std::string numberText(double value) {
  char digits[32];
  const auto [end, status] = std::to_chars(digits, digits + sizeof digits, value);
  std::string text(digits, end);
  // 1e-05 and 1e+06 become 1e-5 and 1e6.
  if (const size_t e = text.find('e'); e != std::string::npos) {
    size_t zeros = e + 2;
    while (zeros + 1 < text.size() && text[zeros] == '0') ++zeros;
    text.erase(e + 2, zeros - e - 2);
    if (text[e + 1] == '+') text.erase(e + 1, 1);
  }
  return text;
}

}  // namespace normc
