#include "autotune/measure/Stats.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
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

/// Medians of resampled samples. The samples are sorted once, and draws are counted by rank.
class Resampling {
 public:
  explicit Resampling(const Samples& samples)
      : sorted_(samples), rank_(samples.size()), drawn_(samples.size()) {
    std::vector<size_t> order(samples.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return samples[a] < samples[b]; });
    for (size_t i = 0; i < order.size(); ++i) {
      sorted_[i] = samples[order[i]];
      rank_[order[i]] = i;
    }
  }

  double median(std::mt19937_64& random) {
    const size_t count = sorted_.size();
    std::uniform_int_distribution<size_t> pick(0, count - 1);
    std::fill(drawn_.begin(), drawn_.end(), 0);
    for (size_t i = 0; i < count; ++i) ++drawn_[rank_[pick(random)]];
    const size_t upper = at(count / 2);
    return count % 2 ? sorted_[upper] : (sorted_[upper] + sorted_[at(count / 2 - 1)]) / 2;
  }

 private:
  /// Returns the rank of the n-th draw.
  size_t at(size_t n) const {
    size_t rank = 0;
    for (size_t before = drawn_[0]; before <= n; before += drawn_[++rank]) {
    }
    return rank;
  }

  Samples sorted_;
  std::vector<size_t> rank_, drawn_;
};

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
  Resampling paired(ratios(ours, theirs));
  std::mt19937_64 random(1);
  Samples medians(kResamples);
  for (double& each : medians) each = paired.median(random);
  std::sort(medians.begin(), medians.end());
  return medians;
}

Ratio pairedRatio(const Samples& ours, const Samples& theirs) { return geometricMean({{ours, theirs}}); }

Ratio geometricMean(const std::vector<std::pair<Samples, Samples>>& pairs) {
  std::vector<Resampling> cases;
  Ratio result;
  double logSum = 0;
  for (const auto& [ours, theirs] : pairs) {
    const Samples paired = ratios(ours, theirs);
    cases.emplace_back(paired);
    logSum += std::log(median(paired));
  }
  result.value = std::exp(logSum / double(cases.size()));

  std::mt19937_64 random(1);
  Samples means(kResamples);
  for (double& mean : means) {
    double sum = 0;
    for (Resampling& paired : cases) sum += std::log(paired.median(random));
    mean = std::exp(sum / double(cases.size()));
  }
  std::sort(means.begin(), means.end());
  result.low = means[kResamples / 40];
  result.high = means[kResamples - 1 - kResamples / 40];
  return result;
}

}  // namespace normc::measure
