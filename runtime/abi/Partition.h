// Divides the units of a phase into chunks, each of which is a task: one policy for all calls
// (docs/package-format.md, "A phase"). A target sets the numbers of a phase that the policy uses, and the
// runtime applies it.
#pragma once

#include "runtime/abi/Manifest.h"

namespace normc::package {

/// Computes one cut per phase, from the problem and the schedule alone. Returns false if a size is too large
/// to count.
bool computeCuts(const Kernel&, const Sizes&, normc_cut* cuts);

/// Computes upper bounds of the chunks of calls of at most these sizes: the number of chunks of the least
/// length, up to the limit. Returns false if a size is too large to count.
bool boundCuts(const Kernel&, const Sizes&, normc_cut* cuts);

}  // namespace normc::package
