// The decision of a race: the rule by which a schedule replaces the default.
//
// Times are compared in pairs, round by round; only ratios are trusted. A winner is faster than the default
// by more than 2 %, by more than three times the noise of that figure, and its whole 95 % interval is below
// 1. Otherwise the default stays, and the result is a tie. Among schedules that are as fast as the fastest,
// the simplest is chosen, so that the choice is the same the next time.
//
// Two processes that time the same two kernels differ by about half a percent, because their memory is at
// other addresses, and for some kernels by ten percent. More rounds in one process do not show that. So a
// schedule that nearly wins is timed again in other processes, and the mean of their ratios decides. The
// decision on a task that was tuned before changes only for a percent more than the rule requires.
#pragma once

#include <optional>
#include <vector>

#include "autotune/measure/Stats.h"
#include "autotune/search/Landscape.h"

namespace normc::tune {

using measure::Ratio;
using measure::Samples;

inline constexpr double kLeastGain = 0.02, kNoiseFactor = 3, kEquallyFast = 0.01;
/// The additional gain that a schedule needs if it was not chosen before; one that was chosen needs as much
/// less.
inline constexpr double kHysteresis = 0.01;
/// The gain that a schedule may lack in its race and still be timed again.
inline constexpr double kSecondLook = 0.01;
/// The number of standard errors, and the least distance, by which a gain has to differ from a limit to be on
/// one side of it. One of many processes may find a winner slower by chance, so no single process has a veto.
inline constexpr double kDoubt = 3, kLeastDoubt = 0.002;

struct Racer {
  size_t point;
  Samples samples;  ///< of equal length for all; sample i of each is from the same round
};

struct Decision {
  size_t chosen;  ///< the default in a tie
  bool tie = true;
  Ratio ratio;    ///< time of the chosen schedule divided by that of the default; 1 in a tie
  size_t leader;  ///< the fastest schedule
  Ratio leaderRatio;
};

/// Returns the decision of a race. The default has to be among the racers. `incumbent`: the choice of an
/// earlier tuning of the task; the default if it was a tie. `slack`: the gain that may be missing, if a win
/// is confirmed afterwards.
Decision decide(const Landscape&, const std::vector<Racer>&, std::optional<size_t> incumbent = {},
                double slack = 0);

/// Returns the mean of the ratios that `each` process found, and two standard errors about it.
Ratio meanRatio(const Samples& each);

/// Returns the decision after confirmation, from the ratio that `each` process found. It remains a win if
/// their mean gain is as large as the rule requires and is clearly above 0; one process alone cannot show
/// that. Its ratio is their mean.
Decision confirmed(const Landscape&, const Decision& won, const Samples& each,
                   std::optional<size_t> incumbent = {});

/// True if another process might change the result: the ratios differ so much that their mean is on its side
/// of the limit only by chance.
bool undecided(const Landscape&, const Decision& won, const Samples& each,
               std::optional<size_t> incumbent = {});

/// Returns the noise of the median of paired ratios: the median absolute deviation over bootstrapped medians.
double noiseOf(const Samples& ours, const Samples& theirs);

/// True if `theirs` is clearly slower than `ours`: the 99 % interval of the ratio is above 1, and so is the
/// ratio of each process. Each process has `block` rounds.
bool clearlySlower(const Samples& theirs, const Samples& ours, size_t block);

}  // namespace normc::tune
