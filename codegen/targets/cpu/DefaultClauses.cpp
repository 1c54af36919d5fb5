#include "codegen/targets/cpu/DefaultClauses.h"

#include <algorithm>

namespace normc::codegen::cpu {

/// True if the features of a vector, which `rope` turns, have mates that are one vector too, or the vector
/// itself (lower/PairLowering.h).
static bool fitsPairs(const Problem& problem, int64_t lanes) {
  const auto& rope = *problem.spec->rope;
  if (!problem.features) return false;
  const int64_t run = *problem.features / problem.groups(rope.groups),
                pairs = problem.pairs(*problem.features);
  return run % lanes == 0 && (rope.pairs == Pairs::Interleaved ? 2 * pairs : pairs) % lanes == 0;
}

/// Chooses the lanes that fit pairs best. Where none do, each lane finds its own mate, which takes so many
/// instructions that a step has one vector.
static void fitPairs(const Problem& problem, Schedule& s) {
  int64_t lanes = s.vector;
  while (lanes > 4 && !fitsPairs(problem, lanes)) lanes /= 2;
  if (fitsPairs(problem, lanes)) {
    s.vector = lanes;
    // A step has both features of a pair.
    if (problem.spec->rope->pairs == Pairs::Half && s.unroll == 1) {
      s.unroll = 2;
      s.rows = std::min<int64_t>(s.rows, 4);
    }
    return;
  }
  s.rows = s.unroll = 1;
  s.stream = 0;
  s.ahead = s.fetch = s.nta = false;
}

void fitClauses(const Problem& problem, Schedule& s) {
  if (s.strategy == Strategy::Split) return;
  // A step stores half a line of codes at a time: non-temporal, it took 3.5 times as long.
  if (problem.spec->quantize && !isBackward(problem.entry)) {
    s.stream = 0;
    s.fetch = s.nta = false;
  }
  if (problem.spec->rope) fitPairs(problem, s);
  if (s.rows == 1 && s.stream <= 1) s.inTurn = false;  // one row has no turn
}

}  // namespace normc::codegen::cpu
