#include <algorithm>
#include <limits>

#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

Tracked decayed(double keep, Tracked old, Tracked current) { return keep * old + (1 - keep) * current; }

/// Returns the mean of `steps` values from that of those before. 1 - (steps - 1) / steps as a weight would
/// have the error of a difference, `steps` times that of 1 / steps.
Tracked meanWith(double steps, Tracked before, Tracked current) {
  return (steps - 1) / steps * before + 1 / steps * current;
}

// Returns the running value after step number `step`.
Values accumulated(const Call& call, Values running, const Values& current, int64_t step) {
  const Accumulate how = call.spec.warmup ? call.spec.warmup->accumulate : Accumulate::Decay;
  const bool cumulative = how != Accumulate::Decay && step < call.settings.warmupSteps;
  const bool decays = !cumulative || how == Accumulate::CumulativeThenDecay;
  const double t = static_cast<double>(step);
  for (size_t i = 0; i < running.size(); ++i) {
    if (cumulative) running[i] = meanWith(t, running[i], current[i]);
    if (decays) running[i] = decayed(call.settings.decay, running[i], current[i]);
  }
  return running;
}

// Returns the value that enters the running moment: in a window the moment that divided, else that of this
// batch; a standard deviation for renorm std.
Values enteringMoment(const Call& call, const BatchStatistics& batch, const Applied& applied) {
  if (call.spec.divideBy == DivideBy::Window) return applied.dividing;
  Values out;
  if (call.spec.renorm.kind == Renorm::Std) {
    for (const Tracked& s : applied.s) out.push_back({1 / s.value, s.magnitude / (s.value * s.value)});
    return out;
  }
  const double rows = static_cast<double>(call.realRows());
  const double factor = call.spec.running->unbiased ? rows / std::max(rows - 1, 1.0) : 1;
  for (const Tracked& moment : batch.moment) out.push_back(factor * moment);
  return out;
}

// Returns the step whose forward filled the windows; 0 if there are no windows, or no forward was made.
int64_t windowStep(const Call& call) {
  if (call.spec.divideBy != DivideBy::Window) return 0;
  return static_cast<int64_t>(call.given.saved.at("step")[0]);
}

}  // namespace

Changed stateAfterForward(const Call& call, const BatchStatistics& batch, const Applied& applied,
                          int64_t step) {
  Changed out;
  out["step"] = {exact(static_cast<double>(step))};
  const Values moment = enteringMoment(call, batch, applied);
  for (const Field& field : stateFields(call.problem)) {
    const Values before = call.state(field.name);
    if (field.name == "running_mean") out[field.name] = accumulated(call, before, batch.mean, step);
    if (field.name == "psi2" || field.name == "running_var" || field.name == "running_std") {
      out[field.name] = accumulated(call, before, moment, step);
    }
    if (field.name == "window_psi2") out[field.name] = ringWith(call, before, batch.moment, step);
  }
  return out;
}

// An empty batch is corrected like any other, but does not change the state.
Correction correct(const Call& call, const Values& gradient, const Values& energy) {
  Correction out;
  const Values before = call.state("nu");
  const double keep = call.settings.backwardDecay;
  if (call.spec.approximate.nu == Nu::Feedback) {
    out.kappa = before;
    Values& after = out.state["nu"];
    for (size_t i = 0; i < before.size(); ++i) {
      constexpr double kNone = -std::numeric_limits<double>::infinity();
      Tracked gamma = energy[i];
      if (call.settings.clampGamma) gamma = clipped(gamma, kNone, *call.settings.clampGamma, call.unit());
      after.push_back(before[i] - (1 - keep) * (gamma * before[i]) + (1 - keep) * gradient[i]);
    }
  } else {
    out.kappa = gradient;
    if (const int64_t step = windowStep(call); step > 0) {
      const Values ring = ringWith(call, call.state("window_nu"), gradient, step);
      if (!call.early(step)) out.kappa = ringMean(call, ring, WindowMean::Arithmetic);
      out.state["window_nu"] = ring;
    }
    if (call.spec.approximate.nu == Nu::Average) {
      for (size_t i = 0; i < before.size(); ++i) out.kappa[i] = decayed(keep, before[i], out.kappa[i]);
      out.state["nu"] = out.kappa;
    }
  }
  if (call.emptyBatch()) out.state.clear();
  return out;
}

Quantity quantity(const Values& values) {
  Quantity out;
  for (const Tracked& each : values) {
    out.value.push_back(each.value);
    out.magnitude.push_back(each.magnitude);
  }
  return out;
}

void publishState(const Call& call, const Changed& changed, Outputs& outputs) {
  for (const Field& field : stateFields(call.problem)) {
    const auto found = changed.find(field.name);
    outputs["state." + field.name] =
        quantity(found == changed.end() ? call.state(field.name) : found->second);
  }
}

}  // namespace normc::reference
