// The order of the contestants in a round of a race.
#pragma once

#include <cstddef>
#include <vector>

namespace normc::measure {

/// Returns the numbers below `contestants` in the order of a round, counted from 0: another order in each
/// round, and the same one for the same round in every run. In a rotation a contestant would always follow
/// the same one: after one with the same tensors it would find them in the caches, while that one found those
/// of a third.
std::vector<size_t> orderOfRound(size_t contestants, int round);

}  // namespace normc::measure
