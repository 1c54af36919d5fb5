// The arguments of an entry over ranks: those of one rank of several, with the sums that the reference
// computes for all of them.
#pragma once

#include "dsl/Reference.h"

namespace normc::gate {

/// Returns the arguments of the first rank for the problem's entry. `ranks`: the input tensors and the
/// state of each rank, whether the entry takes them or not.
Result<ReferenceCall> argumentsOverRanks(const Problem&, std::vector<ReferenceCall> ranks);

}  // namespace normc::gate
