// From x to h, the input of the norm, and from its gradient to those of x, residual and gate.
#include <algorithm>

#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

// Returns a + b as an input of the norm. Their errors add up; the sum itself is rounded relative to itself,
// so terms that cancel leave no error.
Tracked inputSum(Tracked a, Tracked b) {
  const auto errors = [](Tracked t) { return std::max(0.0, t.magnitude - std::abs(t.value)); };
  const double value = a.value + b.value;
  return rounded(flushed({value, std::abs(value) + errors(a) + errors(b)}));
}

}  // namespace

Values hOf(const Call& call) {
  const bool stored = call.spec.hasStream() && isBackward(call.problem.entry);
  Values h(call.elements());
  call.forEach([&](int64_t i, int64_t row, int64_t feature, int64_t) {
    const At at{i, row, feature};
    if (stored) {
      h[i] = call.input(kResidualOut, at);
      return;
    }
    h[i] = call.input(kX, at);
    if (call.spec.hasGate(Side::Before)) h[i] = rounded(h[i] * gateAt(call, at).value);
    if (call.spec.hasResidual(Side::Before)) h[i] = inputSum(h[i], call.input(kResidual, at));
  });
  return h;
}

Values inputBackward(const Call& call, Values dh, Gradients& gradients) {
  const bool gated = call.spec.hasGate(Side::Before), added = call.spec.hasResidual(Side::Before);
  if (!gated && !added) return dh;
  call.forEach([&](int64_t i, int64_t row, int64_t feature, int64_t) {
    if (!call.present(row)) return;
    const At at{i, row, feature};
    if (!call.given.dresidualOut.empty()) dh[i] = rounded(dh[i] + call.input(kDresidualOut, at));
    if (added) gradients.add(kDresidual, at, dh[i]);
    if (!gated) return;
    const Gated gate = gateAt(call, at);
    // A gradient of h beyond the type of the statistics is an infinity in a kernel, which no gate makes
    // finite.
    const bool overflows = std::abs(dh[i].value) > call.largestValue();
    const auto product = [&](Tracked factor) {
      const Tracked result = rounded(dh[i] * factor);
      return Tracked{result.value, overflows ? kAnything : result.magnitude};
    };
    gradients.add(kDgate, at, product(rounded(call.input(kX, at) * gate.slope)));
    dh[i] = product(gate.value);
  });
  return dh;
}

Gradients::Gradients(const Call& call) : call_(call) {
  for (Tensor each : {kDresidual, kDgate, kDmodScale, kDmodShift})
    if (isTaken(infoOf(each), call.problem.entry, call.has)) sums_[each].resize(call.elements(each));
}

void Gradients::add(Tensor tensor, At at, Tracked term) {
  if (const auto sums = sums_.find(tensor); sums != sums_.end())
    sums->second[call_.index(tensor, at)].add(term);
}

void Gradients::publish(Outputs& outputs) const {
  for (const auto& [tensor, sums] : sums_) {
    Values values;
    for (const Sum& sum : sums) values.push_back(flushed(sum.total()));
    outputs[std::string(name(tensor))] = quantity(values);
  }
}

}  // namespace normc::reference
