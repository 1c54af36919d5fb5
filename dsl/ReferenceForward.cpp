#include <algorithm>

#include "dsl/ReferenceParts.h"
#include "dsl/Tolerance.h"

namespace normc::reference {
namespace {

Values constant(const Call& call, double value) { return Values(call.statistics(), exact(value)); }

// Returns the second moment that divides in step `step`.
Values dividing(const Call& call, const BatchStatistics& batch, int64_t step) {
  switch (call.spec.divideBy) {
    case DivideBy::Current:
      return batch.moment;
    case DivideBy::Running:
      if (call.inWarmup(step)) return batch.moment;
      return call.state(call.spec.moment == Moment::Raw ? "psi2" : "running_var");
    case DivideBy::Window: {
      if (call.early(step)) return batch.moment;
      const Values ring = ringWith(call, call.state("window_psi2"), batch.moment, step);
      return ringMean(call, ring, call.spec.window.mean);
    }
  }
  return {};
}

// r = clip(s_running / s), shift = clip((c - running mean) * s_running), from the state before this step.
void renormalize(const Call& call, int64_t step, Applied& applied) {
  const bool waiting = static_cast<double>(step) <= call.settings.renormStart || call.inWarmup(step);
  if (call.spec.renorm.kind == Renorm::None || waiting) return;
  const double limit = call.settings.renormMax, shiftLimit = call.settings.renormShiftMax;
  const Values running = runningScale(call), mean = call.state("running_mean");
  for (size_t i = 0; i < running.size(); ++i) {
    const Tracked s = applied.s[i];
    const double ratio = running[i].value / s.value;
    const Tracked r{ratio, ratio * (s.magnitude / s.value)};
    applied.r[i] = clipped(r, 1 / limit, limit, call.unit());
    if (call.spec.renorm.kind != Renorm::Std) continue;
    applied.shift[i] = clipped((applied.c[i] - mean[i]) * running[i], -shiftLimit, shiftLimit, call.unit());
  }
}

Applied ofBatch(const Call& call, const BatchStatistics& batch, int64_t step) {
  Applied out;
  out.c = constant(call, 0);
  if (call.spec.center == Center::Current) out.c = batch.mean;
  if (call.spec.center == Center::Running) out.c = call.state("running_mean");
  out.dividing = dividing(call, batch, step);
  out.s = inverseRoots(call, out.dividing);
  out.batchScale = inverseRoots(call, batch.moment);
  out.r = constant(call, 1);
  out.shift = constant(call, 0);
  renormalize(call, step, out);
  return out;
}

Values count(const Call& call) {
  if (isOverRanks(call.problem.entry)) return {exact(static_cast<double>(call.realRows()))};
  const int64_t segments = call.spec.perFeature() ? 1 : call.given.extents.segments;
  std::vector<double> real(segments);
  for (int64_t row = 0; row < call.rows; ++row) real[row / (call.rows / segments)] += call.real(row);
  Values out;
  for (double each : real) out.push_back(exact(each));
  return out;
}

}  // namespace

Applied constantStatistics(const Call& call) {
  Applied out;
  out.c = call.spec.center == Center::None ? constant(call, 0) : call.state("running_mean");
  out.s = runningScale(call);
  out.batchScale = out.s;
  out.r = constant(call, 1);
  out.shift = constant(call, 0);
  return out;
}

// A kernel may take h from residual_out as it was stored, for y but not for the statistics. Returns the
// magnitudes of that rounding in u, in units of the granted error; empty if h is not rounded.
static std::vector<double> errorsOfStream(const Call& call, const Prepared& prepared) {
  const DType stored = call.types.stream;
  if (!call.spec.hasStream() || bytes(stored) >= bytes(call.problem.statistics())) return {};
  std::vector<double> errors;
  for (const Tracked h : prepared.h)
    errors.push_back(std::isfinite(h.value) ? ulp(h.value, stored) / 2 / call.unit() : 0);
  if (!call.spec.pre) return errors;
  // u = h r with r = (mean h^2 + eps)^-1/2, hence du = r dh - u r^2 mean(h dh): of h itself r (1 - w) dh with
  // w = h^2 r^2 / width, w of it if only r is made of stored values, and all of it if r is not.
  const int64_t width = call.features / call.preGroups;
  for (size_t first = 0; first < errors.size(); first += size_t(width)) {
    const double r = prepared.factor[first / size_t(width)].value, share = r * r / double(width);
    double products = 0;
    for (size_t i = first; i < first + size_t(width); ++i)
      if (errors[i] > 0) products += std::abs(prepared.h[i].value) * errors[i];
    for (size_t i = first; i < first + size_t(width); ++i) {
      if (errors[i] == 0) continue;
      const double h = std::abs(prepared.h[i].value), own = r * errors[i], w = h * h * share;
      const double ofOthers = r * h * share * (products - h * errors[i]);
      errors[i] = std::max(own, ofOthers + own * std::max(w, 1 - w));
    }
  }
  return errors;
}

double beyondTheBinade(const Call& call, Tracked value, DType stored) {
  const double reached = std::abs(value.value) + 1.5 * call.unit() * value.magnitude;
  return std::isfinite(reached) ? (ulp(reached, stored) - ulp(value.value, stored)) / 2 / call.unit() : 0;
}

void publishOutputs(const Call& call, const Prepared& prepared, const Applied& applied, Outputs& outputs) {
  Values x0(prepared.u.size()), stream(call.spec.hasStream() ? x0.size() : 0);
  const std::vector<double> ofStream = errorsOfStream(call, prepared);
  call.forEach([&](int64_t i, int64_t row, int64_t feature, int64_t k) {
    if (!call.present(row)) return;
    if (!stream.empty()) stream[i] = prepared.h[i];
    Tracked u = prepared.u[i];
    if (!ofStream.empty()) u.magnitude += ofStream[i];
    x0[i] = (u - applied.c[k]) * applied.s[k];
  });
  Values y = outputValues(call, std::move(x0), applied.r, applied.shift);
  const bool rounds = call.problem.roundsBeforeAffine();
  const auto moved = [&](size_t i) { return rounds || (!ofStream.empty() && ofStream[i] > 0); };
  for (size_t i = 0; i < y.size(); ++i)
    if (moved(i) && !call.spec.quantize) y[i].magnitude += beyondTheBinade(call, y[i], call.types.output);
  if (call.spec.quantize) {
    publishCodes(call, y, outputs);
  } else {
    outputs["y"] = quantity(y);
  }
  if (call.spec.hasStream()) outputs["residual_out"] = quantity(stream);
}

void publishSaved(const Call& call, const BatchStatistics& batch, const Applied& applied, int64_t step,
                  Outputs& outputs) {
  const std::map<std::string, Values> known = {
      {"mean", applied.c},
      {"rstd", applied.s},
      {"batch_mean", batch.mean},
      {"batch_rstd", applied.batchScale},
      {"second_moment", batch.moment},
      {"renorm_scale", applied.r},
      {"renorm_shift", applied.shift},
      {"step", {exact(static_cast<double>(step))}},
      {"count", count(call)},
  };
  for (const Field& field : savedFields(call.problem)) {
    outputs["saved." + field.name] = quantity(known.at(field.name));
  }
}

Outputs forward(const Call& call) {
  const Prepared prepared = prepare(call);
  const BatchStatistics batch =
      addsPartials(call.problem.entry) ? statisticsOfPartials(call) : batchStatistics(call, prepared.u);
  const bool learns = call.hasState() && !call.emptyBatch();
  const int64_t step = call.hasState() ? call.stateStep() + learns : 0;
  const Applied applied = call.emptyBatch() ? constantStatistics(call) : ofBatch(call, batch, step);

  Outputs result;
  publishOutputs(call, prepared, applied, result);
  publishSaved(call, batch, applied, step, result);
  publishState(call, learns ? stateAfterForward(call, batch, applied, step) : Changed{}, result);
  return result;
}

Outputs infer(const Call& call) {
  const Prepared prepared = prepare(call);
  const Applied applied =
      call.hasState() ? constantStatistics(call) : ofBatch(call, batchStatistics(call, prepared.u), 0);
  Outputs result;
  publishOutputs(call, prepared, applied, result);
  publishState(call, {}, result);
  return result;
}

}  // namespace normc::reference
