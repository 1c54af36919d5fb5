// Who won a race: the one rule by which a schedule replaces the default.
//
// Times are compared in pairs, round by round; only ratios are trusted. A winner is
// faster than the default by more than 2 %, by more than three times the noise of that
// figure, and its whole 95 % interval lies on its side. Otherwise the default stays, and
// the result is a tie. Among those that are as fast as the fastest, the simplest is
// taken: the same one the next time.
#pragma once

#include <vector>

#include "autotune/measure/Stats.h"
#include "autotune/search/Landscape.h"

namespace normc::tune {

using measure::Ratio;
using measure::Samples;

inline constexpr double kLeastGain = 0.02, kNoiseFactor = 3, kEquallyFast = 0.01;

struct Racer {
  size_t point;
  Samples samples;  ///< of equal length for all; sample i of each is of one round
};

struct Decision {
  size_t chosen;  ///< the default in a tie
  bool tie = true;
  Ratio ratio;    ///< of the chosen to the default; 1 in a tie
  size_t leader;  ///< who was in front
  Ratio leaderRatio;
};

/// The default is among the racers.
Decision decide(const Landscape&, const std::vector<Racer>&);

/// How far the median of paired ratios lies from itself when rounds are drawn again: the median absolute
/// deviation over bootstrapped medians.
double noiseOf(const Samples& ours, const Samples& theirs);

/// Whether `theirs` is slower than `ours` beyond doubt: the 99 % interval of the ratio lies above 1.
bool clearlySlower(const Samples& theirs, const Samples& ours);

}  // namespace normc::tune
