// How the units of a phase become chunks, one of them a task: the policy for every call
// (docs/package-format.md, "A phase"). A target decides the numbers of a phase that it goes by, and the
// runtime cuts.
#pragma once

#include "runtime/abi/Manifest.h"

namespace normc::package {

/// Computes one cut per phase, from the problem and the schedule alone. Returns false if a size is too large
/// to count.
bool computeCuts(const Kernel&, const Sizes&, normc_cut* cuts);

/// Computes the most chunks of any call of at most these sizes: as many as of the least length, but not more
/// than allowed. Returns false if a size is too large to count.
bool boundCuts(const Kernel&, const Sizes&, normc_cut* cuts);

}  // namespace normc::package
