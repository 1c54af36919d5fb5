// The kernels of a package with schedules that records chose.
#pragma once

#include <vector>

#include "autotune/records/Database.h"
#include "codegen/Package.h"

namespace normc::tune {

/// As codegen::defaultJobs, with the choices of the records in place of the target's guesses. Each tuned
/// number of rows serves those nearer to it than to the next (geometrically); the largest serves all beyond,
/// unless its strategy is one that the target limits.
llvm::Expected<std::vector<codegen::Job>> selectedJobs(const Problem&, const std::string& target,
                                                       const Database&);

}  // namespace normc::tune
