#include <algorithm>
#include <cmath>

#include "dsl/ReferenceParts.h"

namespace normc::reference {
namespace {

double inverseRoot(const Call& call, double moment) {
  const double epsilon = call.settings.epsilon;
  switch (call.spec.epsilonMode) {
    case EpsilonMode::Add:
      return 1 / std::sqrt(moment + epsilon);
    case EpsilonMode::Max:
      return 1 / std::sqrt(moment < epsilon ? epsilon : moment);  // NaN stays NaN
    case EpsilonMode::Outside:
      return 1 / (std::sqrt(moment) + epsilon);
  }
  return 0;
}

}  // namespace

// The magnitude is the value itself, or the change of the root by the possible error of the moment if that is
// larger. An infinite moment has no error: an infinity is among its terms.
Tracked inverseRoot(const Call& call, Tracked moment) {
  const double value = inverseRoot(call, moment.value);
  Tracked out{value, std::abs(value)};
  if (std::isinf(moment.value)) return out;
  const double error = call.unit() * moment.magnitude;
  for (double moved : {moment.value + error, std::max(0.0, moment.value - error)}) {
    const double movement = std::abs(inverseRoot(call, moved) - value) / call.unit();
    if (std::isfinite(movement)) out.magnitude = std::max(out.magnitude, movement);
  }
  return out;
}

Values inverseRoots(const Call& call, const Values& moments) {
  Values out;
  for (const Tracked& moment : moments) out.push_back(inverseRoot(call, moment));
  return out;
}

Tracked momentFactor(const Call& call, double moment) {
  switch (call.spec.epsilonMode) {
    case EpsilonMode::Add:
      return exact(1);
    case EpsilonMode::Max:
      return exact(moment < call.settings.epsilon ? 0 : 1);
    case EpsilonMode::Outside: {
      if (moment == 0) return exact(0);
      const double value = 1 / (std::sqrt(moment) * inverseRoot(call, moment));
      // A kernel may take a subnormal moment for 0, as any other; there the factor is 0. Rule P8 keeps the
      // term that is lost small.
      const bool isSubnormal = call.problem.statistics() == DType::F32 && moment < kSmallestNormal;
      return {value, isSubnormal ? value / kUnit : value};
    }
  }
  return {};
}

Values runningScale(const Call& call) {
  if (call.spec.moment == Moment::Raw) return inverseRoots(call, call.state("psi2"));
  if (call.spec.renorm.kind != Renorm::Std) return inverseRoots(call, call.state("running_var"));
  Values out;  // a running deviation contains its epsilon
  for (const Tracked& deviation : call.state("running_std")) out.push_back(exact(1 / deviation.value));
  return out;
}

Values ringWith(const Call& call, Values ring, const Values& current, int64_t step) {
  const int64_t slot = (step - 1) % call.spec.window.size;
  std::copy(current.begin(), current.end(), ring.begin() + slot * call.features);
  return ring;
}

// Returns exp of the mean of logarithms. An error of eps |log q| in log q is a relative error of the same
// size. The variance of equal values may be 0 or as large as its error, and one that may be subnormal may be
// flushed: then the mean is 0, or far from it.
static Tracked geometricMean(const Call& call, const Values& entries) {
  Sum sum, above, below;
  double condition = 1;
  for (const Tracked& entry : entries) {
    const double error = call.unit() * entry.magnitude, logarithm = std::log(entry.value);
    sum.add(exact(logarithm));
    above.add(exact(std::log(entry.value + error)));
    const double least = entry.value - error;
    below.add(exact(std::log(least < kSmallestNormal ? 0 : least)));
    condition = std::max(condition, std::abs(logarithm));
    if (entry.value > 0) condition = std::max(condition, entry.magnitude / entry.value);
  }
  const auto root = [&](const Sum& logarithms) {
    return std::exp(logarithms.mean(double(entries.size())).value);
  };
  const double value = root(sum), movement = std::max(root(above) - value, value - root(below));
  return flushed({value, std::max(value > 0 ? value * condition : 0, movement / call.unit())});
}

Values ringMean(const Call& call, const Values& ring, WindowMean kind) {
  const int64_t size = call.spec.window.size;
  Values out;
  for (int64_t feature = 0; feature < call.features; ++feature) {
    Values entries;
    Sum sum;
    for (int64_t slot = 0; slot < size; ++slot) {
      entries.push_back(ring[slot * call.features + feature]);
      sum.add(entries.back());
    }
    out.push_back(kind == WindowMean::Geometric ? geometricMean(call, entries)
                                                : sum.mean(static_cast<double>(size)));
  }
  return out;
}

}  // namespace normc::reference
