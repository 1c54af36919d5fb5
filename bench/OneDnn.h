// oneDNN as a contestant, where it was found when this was built (scripts/setup --peers).
#pragma once

#include <memory>
#include <string>

#include "bench/Contestant.h"
#include "bench/Tensors.h"
#include "dsl/Problem.h"

namespace normc::bench {

/// "oneDNN 3.2.0"; empty where it was not found.
std::string oneDnnVersion();

/// The same computation on the same tensors, statistics and scratchpad preallocated. Null where there is
/// none: `why` says then what oneDNN lacks.
std::unique_ptr<Contestant> makeOneDnn(const Problem&, Tensors&, int threads, std::string& why);

}  // namespace normc::bench
