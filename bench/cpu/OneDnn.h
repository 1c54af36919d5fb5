// oneDNN as a contestant, where it was found when this was built (scripts/setup --peers).
#pragma once

#include <memory>
#include <string>

#include "autotune/measure/Contestant.h"
#include "autotune/measure/Tensors.h"
#include "dsl/Problem.h"

namespace normc::bench {
using namespace measure;

/// "oneDNN 3.2.0"; empty where it was not found.
std::string oneDnnVersion();

/// The same computation on the same tensors, statistics and scratchpad preallocated. Null where there is
/// none: `why` says then what oneDNN lacks.
std::unique_ptr<Contestant> makeOneDnn(const Problem&, Tensors&, int threads, std::string& why);

}  // namespace normc::bench
