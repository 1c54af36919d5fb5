#include "autotune/measure/Stats.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <random>

namespace normc::measure {
namespace {

constexpr int kResamples = 2000;

Samples ratios(const Samples& ours, const Samples& theirs) {
  assert(ours.size() == theirs.size() && !ours.empty());
  Samples result(ours.size());
  for (size_t i = 0; i < ours.size(); ++i) result[i] = ours[i] / theirs[i];
  return result;
}

double resampledMedian(const Samples& samples, std::mt19937_64& random) {
  std::uniform_int_distribution<size_t> pick(0, samples.size() - 1);
  Samples drawn(samples.size());
  for (double& value : drawn) value = samples[pick(random)];
  return median(std::move(drawn));
}

}  // namespace

double median(Samples samples) {
  assert(!samples.empty());
  const size_t middle = samples.size() / 2;
  std::nth_element(samples.begin(), samples.begin() + middle, samples.end());
  if (samples.size() % 2) return samples[middle];
  return (samples[middle] + *std::max_element(samples.begin(), samples.begin() + middle)) / 2;
}

double medianRatio(const Samples& ours, const Samples& theirs) { return median(ratios(ours, theirs)); }

Samples bootstrappedRatios(const Samples& ours, const Samples& theirs) {
  const Samples paired = ratios(ours, theirs);
  std::mt19937_64 random(1);
  Samples medians(kResamples);
  for (double& each : medians) each = resampledMedian(paired, random);
  std::sort(medians.begin(), medians.end());
  return medians;
}

Ratio pairedRatio(const Samples& ours, const Samples& theirs) { return geometricMean({{ours, theirs}}); }

Ratio geometricMean(const std::vector<std::pair<Samples, Samples>>& pairs) {
  std::vector<Samples> cases;
  Ratio result;
  double logSum = 0;
  for (const auto& [ours, theirs] : pairs) {
    cases.push_back(ratios(ours, theirs));
    logSum += std::log(median(cases.back()));
  }
  result.value = std::exp(logSum / double(cases.size()));

  std::mt19937_64 random(1);
  Samples means(kResamples);
  for (double& mean : means) {
    double sum = 0;
    for (const Samples& samples : cases) sum += std::log(resampledMedian(samples, random));
    mean = std::exp(sum / double(cases.size()));
  }
  std::sort(means.begin(), means.end());
  result.low = means[kResamples / 40];
  result.high = means[kResamples - 1 - kResamples / 40];
  return result;
}

}  // namespace normc::measure
