#include "tests/end_to_end/Smaller.h"

#include <algorithm>

#include "dsl/Check.h"

namespace normc {
namespace {

using Change = void (*)(Spec&, Drawn&);

// Large things first: what they leave out takes smaller ones with it.
constexpr Change kChanges[] = {
    [](Spec& s, Drawn&) { s.quantize.reset(); },
    [](Spec& s, Drawn&) { s.rope.reset(); },
    [](Spec& s, Drawn&) { s.residual.reset(); },
    [](Spec& s, Drawn&) { s.gate.reset(); },
    [](Spec& s, Drawn&) { s.modulate.reset(); },
    [](Spec& s, Drawn&) { s.pre.reset(); },
    [](Spec& s, Drawn&) { s.renorm = {}; },
    [](Spec& s, Drawn&) { s.warmup.reset(); },
    [](Spec& s, Drawn&) { s.activation = Activation::None; },
    [](Spec& s, Drawn&) { s.scale = false, s.scaleOffset.reset(); },
    [](Spec& s, Drawn&) { s.scaleOffset.reset(); },
    [](Spec& s, Drawn&) { s.bias = false; },
    [](Spec& s, Drawn&) { s.groups = {}; },
    [](Spec& s, Drawn&) { s.center = Center::None, s.moment = Moment::Raw; },
    [](Spec& s, Drawn&) { s.divideBy = DivideBy::Current; },
    [](Spec& s, Drawn&) { s.backward = Backward::Exact, s.approximate = {}; },
    [](Spec& s, Drawn&) { s.approximate = {}; },
    [](Spec& s, Drawn&) { s.epsilonMode = EpsilonMode::Add; },
    [](Spec& s, Drawn&) { s.padding = Padding::Exclude; },
    [](Spec& s, Drawn&) {
      if (s.running) s.running->unbiased = false;
    },
    [](Spec& s, Drawn&) {
      if (s.modulate && s.modulate->scale) s.modulate->shift = false;
    },
    [](Spec& s, Drawn&) {
      if (s.modulate && s.modulate->shift) s.modulate->scale = false;
    },
    [](Spec& s, Drawn&) {
      if (s.gate) s.gate->function = Activation::None;
    },
    [](Spec&, Drawn& d) { d.problem.mask = false; },
    [](Spec&, Drawn& d) { d.problem.output.reset(); },
    [](Spec&, Drawn& d) { d.problem.stream.reset(); },
    [](Spec&, Drawn& d) { d.problem.roundsNormalized = false; },
    [](Spec&, Drawn& d) { d.problem.data = d.problem.params = DType::F32; },
    [](Spec&, Drawn& d) { d.problem.layout = Layout::FeaturesLast; },
    [](Spec&, Drawn& d) { d.problem.segmented = false; },
    [](Spec&, Drawn& d) {
      for (auto& [name, value] : d.problem.bindings) value = 1;
    },
    [](Spec&, Drawn& d) { d.features /= 2; },
    [](Spec&, Drawn& d) { d.features -= 1; },
    [](Spec&, Drawn& d) { d.schedule.rows = 1; },
    [](Spec&, Drawn& d) { d.schedule.unroll = 1; },
    [](Spec&, Drawn& d) { d.schedule.tile = 1; },
    [](Spec&, Drawn& d) { d.schedule.grain = 1; },
    [](Spec&, Drawn& d) { d.schedule.inTurn = false; },
};

/// Returns the simpler program; nothing if it is the same, or not legal.
std::optional<Drawn> changed(const Drawn& d, const codegen::cpu::Isa& isa, Change change) {
  Drawn next = d;
  Spec spec = *d.problem.spec;
  change(spec, next);
  for (auto at = next.problem.bindings.begin(); at != next.problem.bindings.end();) {
    const auto names = bindingNames(spec);
    at = std::ranges::find(names, at->first) == names.end() ? next.problem.bindings.erase(at) : std::next(at);
  }
  if (next.features < 1) return {};
  next.problem.spec = std::make_shared<const Spec>(spec);
  if (next.problem.features) next.problem.features = next.features;
  if (textOf(next, isa) == textOf(d, isa) && next.features == d.features) return {};
  if (!checkSpec(spec).empty() || !checkProblem(next.problem)) return {};
  const auto legal = codegen::cpu::strategies(next.problem);
  if (std::ranges::find(legal, next.schedule.strategy) == legal.end()) return {};
  if (codegen::cpu::whyIllegal(next.problem, next.schedule, isa)) return {};
  return next;
}

}  // namespace

Drawn smallest(Drawn d, const codegen::cpu::Isa& isa, const std::function<bool(const Drawn&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Change change : kChanges)
      while (const auto next = changed(d, isa, change)) {
        if (!fails(*next)) break;
        d = *next, smaller = true;
      }
  }
  return d;
}

}  // namespace normc
