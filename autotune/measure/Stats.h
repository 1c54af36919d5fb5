// What a set of noisy samples says, and how sure it is.
//
// Contestants are sampled in turn, so sample i of one and sample i of another
// met the same state of the machine. Only their ratio is trusted: a drift of the
// clock or a busy neighbour moves both. Intervals are percentile bootstraps with
// a fixed seed: the same samples always give the same text.
#pragma once

#include <utility>
#include <vector>

namespace normc::measure {

using Samples = std::vector<double>;  ///< seconds of one call, a number for each round

double median(Samples);

struct Ratio {
  double value = 0;          ///< median of the paired ratios
  double low = 0, high = 0;  ///< 95 % of bootstrapped medians lie between
};

/// The median of `ours` over `theirs`, round by round.
double medianRatio(const Samples& ours, const Samples& theirs);

/// `ours` over `theirs`, round by round. Both have a sample for every round.
Ratio pairedRatio(const Samples& ours, const Samples& theirs);

/// The medians of paired ratios over rounds that are drawn again and again; ascending.
Samples bootstrappedRatios(const Samples& ours, const Samples& theirs);

/// Geometric mean of several paired ratios; the rounds of each are resampled.
Ratio geometricMean(const std::vector<std::pair<Samples, Samples>>& pairs);

}  // namespace normc::measure
