#include <algorithm>
#include <cmath>

#include "dsl/ReferenceParts.h"

namespace normc::reference {

/// A kernel computes the factor (a mean, a root, a division) before it multiplies by it. This takes about
/// half of what the tolerance grants one value.
static constexpr double kComputed = 1.5;

Prepared prepare(const Call& call) {
  Prepared out;
  out.h = out.u = hOf(call);
  if (!call.spec.pre) return out;

  const int64_t width = call.features / call.preGroups;
  for (int64_t first = 0; first < call.rows * call.features; first += width) {
    Sum squares;
    for (int64_t i = first; i < first + width; ++i) squares.add(out.u[i] * out.u[i]);
    const Tracked moment = squares.mean(static_cast<double>(width));
    const double factor = 1 / std::sqrt(moment.value + call.settings.preEpsilon);
    out.factor.push_back({factor, kComputed * factor});
    for (int64_t i = first; i < first + width; ++i) out.u[i] = out.u[i] * out.factor.back();
  }
  return out;
}

// u = h r with r = (mean h^2 + eps)^-1/2, hence dh = r (du - u mean(du u)).
Values prepareBackward(const Call& call, const Prepared& prepared, Values du) {
  if (!call.spec.pre) return du;
  const int64_t width = call.features / call.preGroups;
  for (int64_t first = 0; first < call.rows * call.features; first += width) {
    if (!call.present(first / call.features)) continue;  // stays 0, whatever the values of the row
    Sum products;
    for (int64_t i = first; i < first + width; ++i) products.add(du[i] * prepared.u[i]);
    const Tracked mean = products.mean(static_cast<double>(width));
    const Tracked factor = prepared.factor[first / width];
    for (int64_t i = first; i < first + width; ++i) du[i] = factor * (du[i] - prepared.u[i] * mean);
  }
  return du;
}

std::vector<double> counts(const Call& call) {
  std::vector<double> out(call.statistics());
  if (addsPartials(call.problem.entry)) {
    std::fill(out.begin(), out.end(), static_cast<double>(call.realRows()));
    return out;
  }
  call.forEach(
      [&](int64_t, int64_t row, int64_t, int64_t statistic) { out[statistic] += call.counted(row); });
  return out;
}

BatchStatistics batchStatistics(const Call& call, const Values& u) {
  const std::vector<double> count = counts(call);
  const auto meanOf = [&](auto&& term, bool summed = false) {
    std::vector<Sum> sums(call.statistics());
    call.forEach([&](int64_t i, int64_t row, int64_t, int64_t statistic) {
      if (call.counted(row)) sums[statistic].add(term(i, statistic));
    });
    Values means;
    for (size_t i = 0; i < sums.size(); ++i) means.push_back(sums[i].mean(summed ? 1 : count[i]));
    return means;
  };

  BatchStatistics out;
  out.mean = meanOf([&](int64_t i, int64_t) { return u[i]; });
  if (call.spec.moment != Moment::Central) {
    out.moment = meanOf([&](int64_t i, int64_t) { return u[i] * u[i]; }, call.spec.moment == Moment::Sum);
    return out;
  }
  // A kernel sums squares of differences, so no term is larger than the variance itself, and the remaining
  // error of the mean enters by its square. It merges the moments of parts: such a term may be flushed where
  // no square is small. Only the result of a gate, a residual or a `pre` stage was rounded before, relative
  // to itself and not to the distance: a `pre` by as much as its magnitude has of one value.
  const bool computed =
      call.spec.pre || call.spec.hasGate(Side::Before) || call.spec.hasResidual(Side::Before);
  const double own = call.spec.pre ? kComputed - 1 : 1;
  out.moment = meanOf([&](int64_t i, int64_t statistic) {
    const double distance = u[i].value - out.mean[statistic].value;
    const double errors = computed ? std::max(0.0, u[i].magnitude - own * std::abs(u[i].value)) : 0;
    const double rounded = 2 * std::abs(distance) * errors;
    return flushed({distance * distance, distance * distance + rounded});
  });
  for (size_t i = 0; i < out.moment.size(); ++i) {
    Tracked& moment = out.moment[i];
    moment.magnitude += kRounding * out.mean[i].magnitude * out.mean[i].magnitude;
    if (moment.magnitude > 0) moment.magnitude += kFlush;
  }
  return out;
}

}  // namespace normc::reference
