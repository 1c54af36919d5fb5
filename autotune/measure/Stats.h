// Statistics of noisy samples: medians of paired ratios and their intervals.
//
// Contestants are sampled in turn, so sample i of one and sample i of another were taken in the same state of
// the machine. Only their ratio is trusted: a drift of the clock or a busy neighbour affects both. Intervals
// are percentile bootstraps with a fixed seed, so the same samples always give the same result.
#pragma once

#include <utility>
#include <vector>

namespace normc::measure {

using Samples = std::vector<double>;  ///< seconds of one call, a number for each round

double median(Samples);

struct Ratio {
  double value = 0;          ///< median of the paired ratios
  double low = 0, high = 0;  ///< 95 % of bootstrapped medians are between
};

/// Returns the median of `ours` / `theirs`, round by round.
double medianRatio(const Samples& ours, const Samples& theirs);

/// Returns the median and the interval of `ours` / `theirs`, round by round. Both have a sample for every
/// round.
Ratio pairedRatio(const Samples& ours, const Samples& theirs);

/// Returns the medians of paired ratios over resampled rounds; ascending.
Samples bootstrappedRatios(const Samples& ours, const Samples& theirs);

/// Returns the geometric mean of several paired ratios; the rounds of each are resampled.
Ratio geometricMean(const std::vector<std::pair<Samples, Samples>>& pairs);

}  // namespace normc::measure
