// The search: which schedules are measured, in which order, and when it ends.
//
// It begins with the default. Seeds follow: the choices that records have for similar problems, the best of
// the model, and a few at random. Then neighbours of the leaders are screened until all of those are known
// (Screening.h). The fastest run a race against the default and the incumbent, and decide() gives the winner.
// New processes confirm the winner, more of them if it is near the limit. The search has no clock and no
// processes of its own: a Lab supplies both, so the same code runs on recorded times.
//
// The budget is the limit of all of it. Each stage ends at its share, and nothing is begun that is not
// expected to end in time. Only the default, one candidate and one round of a race take what they take.
#pragma once

#include <functional>
#include <limits>

#include "autotune/search/Decide.h"
#include "autotune/search/Lab.h"

namespace normc::tune {

/// The budget of a task that none is given for, in seconds.
inline constexpr double kUsualBudget = 20;

struct SearchOptions {
  double budget = kUsualBudget;  ///< seconds, by the clock of the lab, at which the search ends
  bool exhaustive = false;       ///< every legal schedule is screened, however long it takes
  uint64_t seed = 1;             ///< seed of the random candidates
  int fromModel = 8, atRandom = 3, leaders = 3;
  int batch = 6;  ///< candidates between two looks at the leaders
  /// in addition to default and incumbent; more than `finalists` if time is left
  int finalists = 5, mostFinalists = 24;
  bool keepAll = false;  ///< no schedule leaves the race; for a comparison of few
  int leastRounds = 20, mostRounds = 100;
  int confirmations = 4, confirmingRounds = 20;  ///< processes and rounds that confirm a winner
  int mostConfirmations = 24;                    ///< if the result is undecided, within the budget
  std::vector<size_t> hints;                     ///< the choices of records for this and similar problems
  std::optional<size_t> incumbent;               ///< the choice of an earlier tuning
  bool absentWin =
      false;  ///< an earlier tuning chose a schedule that the landscape lacks: no tie takes it back
  /// Returns the time at which a share of the budget is over.
  double until(double share) const {
    return exhaustive ? std::numeric_limits<double>::infinity() : share * budget;
  }
  /// Reported after each batch.
  struct Progress {
    size_t done, total;  ///< candidates
    size_t best;         ///< the leading point
    double ratio;        ///< its time divided by that of the default
    double seconds;      ///< since the beginning
    const char* phase;   ///< "screening", "racing", "confirming"
  };
  std::function<void(const Progress&)> progress = [](const Progress&) {};
};

struct Outcome {
  Decision decision;
  std::vector<Screened> screened;
  std::vector<Racer> racers;
  std::vector<Racer> confirmation;  ///< default and winner, which give the decision's ratio; empty: a tie
  bool complete = true;             ///< false: it was stopped; the decision is only the schedule that led
  /// false: also if the budget ended before a schedule could win or lose; then the decision is the default
  bool decided = true;
  bool budgetSpent = false;  ///< it ended because of its budget
  std::string failure;       ///< the default itself could not be measured: nothing is decided
  bool interrupted = false;  ///< true if `failure` means that it was stopped before the first results
  double seconds = 0;
};

/// Up to this multiple of the best prediction a schedule is worth its time: chosen at random, and a
/// neighbour.
inline constexpr double kHopeful = 1.5;

/// Runs the search to its end, its budget, or until the lab is stopped.
Outcome search(const Landscape&, Lab&, const SearchOptions&);

/// Returns the first candidates in the order in which they are tried: default, hints, model, random.
std::vector<size_t> seedsOf(const Landscape&, const SearchOptions&);

}  // namespace normc::tune
