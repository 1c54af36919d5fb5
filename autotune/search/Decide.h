// Who won a race: the one rule by which a schedule replaces the default.
//
// Times are compared in pairs, round by round; only ratios are trusted. A winner is
// faster than the default by more than 2 %, by more than three times the noise of that
// figure, and its whole 95 % interval lies on its side. Otherwise the default stays, and
// the result is a tie. Among those that are as fast as the fastest, the simplest is
// taken: the same one the next time.
//
// Two processes that time the same two kernels differ by about half a percent, since
// their memory lies elsewhere, and some kernels by ten percent; more rounds of one process
// do not show that. So who comes close to winning is timed again in others, and the mean of
// what they found decides; and a task that was decided before is decided otherwise only by a
// percent more than the rule asks for.
#pragma once

#include <optional>
#include <vector>

#include "autotune/measure/Stats.h"
#include "autotune/search/Landscape.h"

namespace normc::tune {

using measure::Ratio;
using measure::Samples;

inline constexpr double kLeastGain = 0.02, kNoiseFactor = 3, kEquallyFast = 0.01;
/// By how much more a schedule must gain that was not chosen before, and less one that was.
inline constexpr double kHysteresis = 0.01;
/// By how much a schedule may fail to win its race and still be timed again.
inline constexpr double kSecondLook = 0.01;
/// How many standard errors away from a limit a gain has to be, and how far at least, to be on one side of it. Of many
/// processes one may find a winner slower by chance, so none of them has a veto.
inline constexpr double kDoubt = 3, kLeastDoubt = 0.002;

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

/// The default is among the racers. `incumbent`: what an earlier tuning of the task chose; the default if it
/// was a tie. `slack`: how much less than the rule asks for is enough, where a win is confirmed afterwards.
Decision decide(const Landscape&, const std::vector<Racer>&, std::optional<size_t> incumbent = {},
                double slack = 0);

/// What becomes of a win, from the ratios that `each` process found which timed it again. It stays one if their mean
/// gain is what the rule asks for and leaves no doubt that there is one, of which one process alone tells nothing; its interval is two
/// standard errors.
Decision confirmed(const Landscape&, const Decision& won, const Samples& each, std::optional<size_t> incumbent = {});

/// Whether another process might turn that round: what `each` of them found differs so much that their mean lies on its
/// side of what is asked for only by chance.
bool undecided(const Landscape&, const Decision& won, const Samples& each, std::optional<size_t> incumbent = {});

/// How far the median of paired ratios lies from itself when rounds are drawn again: the median absolute
/// deviation over bootstrapped medians.
double noiseOf(const Samples& ours, const Samples& theirs);

/// Whether `theirs` is slower than `ours` beyond doubt: the 99 % interval of the ratio lies above 1, and so does what
/// each process found, of which every `block` rounds are one.
bool clearlySlower(const Samples& theirs, const Samples& ours, size_t block);

}  // namespace normc::tune
