// The search: which schedules are measured, in which order, and when it is enough.
//
// It begins with the default. Seeds follow: what records of like problems chose, the
// best of the model, a few at random. Then come the neighbours of the three leaders,
// until no round finds a better one. The fastest go into a race with the default and
// the incumbent, decide() says who won, and who won does so again in processes that know
// nothing of the race, in more of them where it is near the limit. It has no clock and no
// processes of its own: a Lab gives it both, so the same code runs on recorded times.
#pragma once

#include <functional>

#include "autotune/search/Decide.h"
#include "autotune/search/Lab.h"

namespace normc::tune {

struct SearchOptions {
  double budget = 20;       ///< seconds, for the whole search
  bool exhaustive = false;  ///< every legal schedule is screened, however long it takes
  uint64_t seed = 1;        ///< of the random ones
  int fromModel = 8, atRandom = 3, leaders = 3;
  int batch = 6;         ///< candidates that are made together
  int finalists = 5, mostFinalists = 24;  ///< beside default and incumbent; more than the least where time is
  bool keepAll = false;  ///< nobody leaves the race: a few are compared
  int leastRounds = 20, mostRounds = 100;
  int confirmations = 4, confirmingRounds = 20;  ///< of who wins against the default, each afresh
  int mostConfirmations = 24;                    ///< where they leave it undecided, within the budget
  std::vector<size_t> hints;                     ///< what records of this and of like problems chose
  std::optional<size_t> incumbent;
  /// Told after each batch.
  struct Progress {
    size_t done, total;  ///< candidates
    size_t best;         ///< the leading point
    double ratio;        ///< of it to the default
    double seconds;      ///< since the beginning
    const char* phase;   ///< "screening", "racing", "confirming"
  };
  std::function<void(const Progress&)> progress = [](const Progress&) {};
};

struct Outcome {
  Decision decision;
  std::vector<Screened> screened;
  std::vector<Racer> racers;
  std::vector<Racer>
      confirmation;          ///< default and winner, from which the decision's ratio is; empty: nobody won
  bool complete = true;      ///< false: it was stopped; what is decided is who was in front, and binds nobody
  bool budgetSpent = false;  ///< it ended because of its budget
  std::string failure;       ///< the default itself could not be measured: nothing is decided
  bool interrupted = false;  ///< `failure` is that it was stopped before there was anything to decide by
  double seconds = 0;
};

Outcome search(const Landscape&, Lab&, const SearchOptions&);

/// The first candidates, in the order in which they would be tried: default, hints, model, random.
std::vector<size_t> seedsOf(const Landscape&, const SearchOptions&);

}  // namespace normc::tune
