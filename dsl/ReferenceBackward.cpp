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
    out.c = std::move(applied.c);
    out.s = std::move(applied.s);
    out.batchScale = std::move(applied.batchScale);
    out.r = std::move(applied.r);
    out.shift = std::move(applied.shift);
    return out;
  }
  out.c = saved("mean", 0);
  out.s = saved("rstd", 1);
  out.r = saved("renorm_scale", 1);
  out.shift = saved("renorm_shift", 0);
  out.moment = call.saved("second_moment");
  out.batchScale = call.spec.hasBatchScale() ? call.saved("batch_rstd") : out.s;
  if (call.spec.moment == Moment::Central && call.spec.center == Center::Current) out.about = out.c;
  return out;
}

Tracked meanOf(const Values& totals, int64_t k, double count) {
  return totals.empty() ? Tracked{} : flushed(totals[k] / std::max(count, 1.0));
}

// Returns mean(x0 x0). It follows from the moment of the batch if that was saved and has the same centre and
// rows. Then partials do not have it, and behind a stream it is that of the exact h, not of the stored one.
Tracked energyOf(const Call& call, const Saved& saved, const Values& totals, int64_t k, double count) {
  const Spec& spec = call.spec;
  const bool sameRows = !call.problem.leavesRowsOut();
  const bool follows = sameRows && spec.momentIsOfX0() && !saved.moment.empty();
  if (totals.empty() || (follows && call.problem.entry == Entry::Backward))
    return follows ? saved.s[k] * saved.s[k] * saved.moment[k] : Tracked{};
  return meanOf(totals, k, count);
}

// Sums over the rows that have a gradient, for each statistic and each feature. If padded rows have one, the
// terms of the exact derivative are still divided by the number of rows that made the statistic; those of nu
// are divided by the number of rows that are summed.
struct Sums {
  Values h, hX0, x0X0;       // of each statistic
  std::vector<double> rows;  // elements of each statistic
  Values dscale, dbias;      // of each feature
};

Values totals(const std::vector<Sum>& sums) {
  Values out;
  for (const Sum& sum : sums) out.push_back(flushed(sum.total()));
  return out;
}

// Returns what flushing adds to the magnitude of a product with x0 in a sum over rows. Kernels sum products
// with u - c = x0 / s, and multiply the sum by `factor`, which contains s. A product that is this small may
// be flushed itself, or be what is left of the sum when another is added.
double flushedBeforeScale(double product, double factor) {
  return product != 0 && std::abs(product) < kFlush ? kFlush * std::abs(factor) : 0;
}

// Sums the gradients g of the affine output, and writes h, those of the normalized value.
Sums sumGradients(const Call& call, const Saved& saved, const Values& x0, const Values& g, Values& h) {
  std::vector<Sum> sumH(call.statistics()), sumHX0(call.statistics()), sumX0X0(call.statistics());
  std::vector<Sum> dscale(call.features), dbias(call.features);
  Sums sums{.rows = std::vector<double>(call.statistics())};
  h.resize(x0.size());
  call.forEach([&](int64_t i, int64_t row, int64_t feature, int64_t k) {
    if (!call.present(row)) return;
    const Tracked r = saved.r[k], factor = call.spec.scale ? factorOf(call, feature) : exact(1);
    h[i] = r * (call.spec.scale ? factor * g[i] : g[i]);
    Tracked hX0 = h[i] * x0[i], x0X0 = x0[i] * x0[i], term = g[i] * (r * x0[i] + saved.shift[k]);
    const double s = saved.s[k].value, distance = x0[i].value / s;
    hX0.magnitude += flushedBeforeScale(g[i].value * distance, r.value * factor.value * s);
    x0X0.magnitude += flushedBeforeScale(distance * distance, s * s);
    term.magnitude += flushedBeforeScale(g[i].value * distance, r.value * s);
    sumH[k].add(h[i]);
    sumHX0[k].add(hX0);
    sumX0X0[k].add(x0X0);
    sums.rows[k] += 1;
    dscale[feature].add(term);
    dbias[feature].add(g[i]);
  });
  sums.h = totals(sumH);
  sums.hX0 = totals(sumHX0);
  sums.x0X0 = totals(sumX0X0);
  sums.dscale = totals(dscale);
  sums.dbias = totals(dbias);
  return sums;
}

void publishSums(const Call& call, const Sums& sums, Outputs& outputs) {
  publishPartial(call,
                 {{"gradient", sums.h},
                  {"gradient_x", sums.hX0},
                  {"energy", sums.x0X0},
                  {"gradient_rows", {exact(static_cast<double>(call.rows))}}},
                 outputs);
}

// Takes the sums of all ranks in place of those of this call.
void sumPartials(const Call& call, const std::vector<double>& count, Sums& sums) {
  sums.h = totalOfPartials(call, "gradient");
  sums.hX0 = totalOfPartials(call, "gradient_x");
  sums.x0X0 = totalOfPartials(call, "energy");
  const Values rows = totalOfPartials(call, "gradient_rows");
  for (size_t k = 0; k < sums.rows.size(); ++k) sums.rows[k] = rows.empty() ? count[k] : rows[0].value;
}

// The means of the derivative, for each statistic.
struct Means {
  Values h, hX0, factor;
};

Means meansOf(const Call& call, const Saved& saved, const Sums& sums, const std::vector<double>& count) {
  Means means;
  for (int64_t k = 0; k < call.statistics(); ++k) {
    means.h.push_back(meanOf(sums.h, k, count[k]));
    means.hX0.push_back(meanOf(sums.hX0, k, call.spec.moment == Moment::Sum ? 1 : count[k]));
    means.factor.push_back(saved.moment.empty() ? exact(1) : momentFactor(call, saved.moment[k].value));
  }
  return means;
}

// Returns kappa and the next nu of an approximate backward.
Correction correctionOf(const Call& call, const Saved& saved, const Sums& sums) {
  Values gradientMean, energyMean;
  for (int64_t k = 0; k < call.statistics(); ++k) {
    gradientMean.push_back(meanOf(sums.hX0, k, sums.rows[k]));
    energyMean.push_back(energyOf(call, saved, sums.x0X0, k, sums.rows[k]));
  }
  return correct(call, gradientMean, energyMean);
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

  Values x0(prepared.u.size()), h;
  Gradients gradients(call);
  call.forEach([&](int64_t i, int64_t row, int64_t, int64_t k) {
    if (call.present(row)) x0[i] = (prepared.u[i] - saved.c[k]) * saved.s[k];
  });
  const Values g = gradientsOfAffine(call, x0, saved.r, saved.shift, gradients);
  Sums sums = sumGradients(call, saved, x0, g, h);
  Outputs outputs;
  const bool reduces = call.problem.entry == Entry::BackwardReduce;
  if (reduces) publishSums(call, sums, outputs);
  const std::vector<double> count = counts(call);
  if (call.problem.entry == Entry::BackwardApply) sumPartials(call, count, sums);
  const Means means = meansOf(call, saved, sums, count);
  const Correction correction = corrects ? correctionOf(call, saved, sums) : Correction{};

  Values du(prepared.u.size());
  call.forEach([&](int64_t i, int64_t row, int64_t, int64_t k) {
    if (!call.present(row)) return;
    Tracked inner = h[i];
    if (differentiatesMean && call.counted(row)) inner = inner - means.h[k];
    if (differentiatesMoment && call.counted(row)) {
      const Tracked rho = (prepared.u[i] - saved.about[k]) * saved.s[k];
      inner = inner - means.factor[k] * (rho * means.hX0[k]);
    }
    if (corrects) inner = inner - x0[i] * correction.kappa[k];
    du[i] = saved.batchScale[k] * inner;
  });

  Values dh = prepareBackward(call, prepared, std::move(du));
  outputs["dx"] = quantity(inputBackward(call, std::move(dh), gradients));
  gradients.publish(outputs);
  outputs["dscale"] = spec.scale ? quantity(sums.dscale) : Quantity{};
  outputs["dbias"] = spec.bias ? quantity(sums.dbias) : Quantity{};
  if (!reduces) publishState(call, correction.state, outputs);
  return outputs;
}

}  // namespace normc::reference
