#include <algorithm>

#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

// The values that the forward used for each statistic: what it saved, where a field that is not saved has its
// neutral value, or what inference takes from the state.
struct Saved {
  Values c, s, r, shift, batchScale;
  Values about;   // c_m: the point about which the second moment was taken
  Values moment;  // empty if f does not need it
};

Saved read(const Call& call) {
  const auto saved = [&call](const char* field, double otherwise) {
    Values out = call.saved(field);
    return out.empty() ? Values(call.statistics(), exact(otherwise)) : out;
  };
  Saved out;
  out.about = saved("batch_mean", 0);
  if (call.problem.hasConstantStatistics()) {
    Applied applied = constantStatistics(call);
    out.c = std::move(applied.c), out.s = std::move(applied.s),
    out.batchScale = std::move(applied.batchScale);
    out.r = std::move(applied.r), out.shift = std::move(applied.shift);
    return out;
  }
  out.c = saved("mean", 0);
  out.s = saved("rstd", 1);
  out.r = saved("renorm_scale", 1);
  out.shift = saved("renorm_shift", 0);
  out.moment = call.saved("second_moment");
  const bool batchScale =
      call.spec.backward == Backward::Approximate && call.spec.approximate.scale == BackwardScale::Batch;
  out.batchScale = batchScale ? call.saved("batch_rstd") : out.s;
  if (call.spec.moment == Moment::Central && call.spec.center == Center::Current) out.about = out.c;
  return out;
}

Tracked meanOf(const Values& totals, int64_t k, double count) {
  if (totals.empty()) return {};
  const double divisor = std::max(count, 1.0);
  return flushed({totals[k].value / divisor, totals[k].magnitude / divisor});
}

// Returns mean(x0 x0). It follows from the moment of the batch if that was saved and has the same centre and
// rows. Then partials do not have it, and behind a stream it is that of the exact h, not of the stored one.
Tracked energyOf(const Call& call, const Saved& saved, const Values& totals, int64_t k, double count) {
  const Spec& spec = call.spec;
  const bool sameRows = !call.problem.mask || spec.padding == Padding::Exclude;
  const bool sameCentre = spec.center == (spec.moment == Moment::Central ? Center::Current : Center::None);
  const bool follows = sameRows && sameCentre && !saved.moment.empty();
  if (totals.empty() || (follows && call.problem.entry == Entry::Backward))
    return follows ? saved.s[k] * saved.s[k] * saved.moment[k] : Tracked{};
  return meanOf(totals, k, count);
}

}  // namespace

// du = s_b [ h - k_mu m mean(h) - k_psi f m rho mean(h x0) - k_nu w x0 kappa ]
Outputs backward(const Call& call) {
  const Spec& spec = call.spec;
  const Prepared prepared = prepare(call);
  const Saved saved = read(call);
  const Backward form = call.problem.hasConstantStatistics() ? Backward::Frozen : spec.backward;
  const bool differentiatesMean = spec.center == Center::Current && form != Backward::Frozen;
  const bool differentiatesMoment = spec.divideBy == DivideBy::Current && form == Backward::Exact;
  const bool corrects = form == Backward::Approximate;

  // Sums are over all rows that have a gradient. If padded rows have one, the terms of the exact derivative
  // are still divided by the number of rows that made the statistic; those of nu are divided by the number of
  // rows that are summed.
  Values x0(prepared.u.size()), h(prepared.u.size());
  std::vector<Sum> sumH(call.statistics()), sumHX0(call.statistics()), sumX0X0(call.statistics());
  std::vector<Sum> dscale(call.features), dbias(call.features);
  std::vector<double> summed(call.statistics());
  Gradients gradients(call);
  call.forEach([&](int64_t i, int64_t row, int64_t, int64_t k) {
    if (call.present(row)) x0[i] = (prepared.u[i] - saved.c[k]) * saved.s[k];
  });
  const Values g = gradientsOfAffine(call, x0, saved.r, saved.shift, gradients);
  call.forEach([&](int64_t i, int64_t row, int64_t feature, int64_t k) {
    if (!call.present(row)) return;
    const Tracked gradient = g[i];
    h[i] = saved.r[k] * (spec.scale ? factorOf(call, feature) * gradient : gradient);
    sumH[k].add(h[i]);
    sumHX0[k].add(h[i] * x0[i]);
    sumX0X0[k].add(x0[i] * x0[i]);
    summed[k] += 1;
    dscale[feature].add(gradient * (saved.r[k] * x0[i] + saved.shift[k]));
    dbias[feature].add(gradient);
  });

  const auto parameter = [](const std::vector<Sum>& sums) {
    Values out;
    for (const Sum& sum : sums) out.push_back(flushed(sum.total()));
    return out;
  };
  Outputs outputs;
  Values totalH = parameter(sumH), totalHX0 = parameter(sumHX0), totalX0X0 = parameter(sumX0X0);
  const bool reduces = call.problem.entry == Entry::BackwardReduce;
  if (reduces) {
    // Kernels sum squares of distances, which may be flushed, and multiply the sum by s^2.
    for (int64_t k = 0; k < call.statistics(); ++k)
      totalX0X0[k].magnitude += kFlush * summed[k] * saved.s[k].value * saved.s[k].value;
    publishPartial(call,
                   {{"gradient", totalH},
                    {"gradient_x", totalHX0},
                    {"energy", totalX0X0},
                    {"gradient_rows", {exact(static_cast<double>(call.rows))}}},
                   outputs);
  }
  const std::vector<double> count = counts(call);
  if (call.problem.entry == Entry::BackwardApply) {
    totalH = totalOfPartials(call, "gradient"), totalHX0 = totalOfPartials(call, "gradient_x");
    totalX0X0 = totalOfPartials(call, "energy");
    const Values rows = totalOfPartials(call, "gradient_rows");
    for (size_t k = 0; k < summed.size(); ++k) summed[k] = rows.empty() ? count[k] : rows[0].value;
  }
  Values meanH, meanHX0, factor, gradientMean, energyMean;
  for (int64_t k = 0; k < call.statistics(); ++k) {
    meanH.push_back(meanOf(totalH, k, count[k]));
    meanHX0.push_back(meanOf(totalHX0, k, spec.moment == Moment::Sum ? 1 : count[k]));
    factor.push_back(saved.moment.empty() ? exact(1) : momentFactor(call, saved.moment[k].value));
    gradientMean.push_back(meanOf(totalHX0, k, summed[k]));
    energyMean.push_back(energyOf(call, saved, totalX0X0, k, summed[k]));
  }
  const Correction correction = corrects ? correct(call, gradientMean, energyMean) : Correction{};

  Values du(prepared.u.size());
  call.forEach([&](int64_t i, int64_t row, int64_t, int64_t k) {
    if (!call.present(row)) return;
    Tracked inner = h[i];
    if (differentiatesMean && call.counted(row)) inner = inner - meanH[k];
    if (differentiatesMoment && call.counted(row)) {
      const Tracked rho = (prepared.u[i] - saved.about[k]) * saved.s[k];
      inner = inner - factor[k] * (rho * meanHX0[k]);
    }
    if (corrects) inner = inner - x0[i] * correction.kappa[k];
    du[i] = saved.batchScale[k] * inner;
  });

  Values dh = prepareBackward(call, prepared, std::move(du));
  outputs["dx"] = quantity(inputBackward(call, std::move(dh), gradients));
  gradients.publish(outputs);
  outputs["dscale"] = spec.scale ? quantity(parameter(dscale)) : Quantity{};
  outputs["dbias"] = spec.bias ? quantity(parameter(dbias)) : Quantity{};
  if (!reduces) publishState(call, correction.state, outputs);
  return outputs;
}

}  // namespace normc::reference
