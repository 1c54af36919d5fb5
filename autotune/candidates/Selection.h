// The kernels of a package, with schedules chosen by records.
#pragma once

#include <vector>

#include "autotune/records/Database.h"
#include "codegen/Package.h"

namespace normc::tune {

/// Returns codegen::defaultJobs with the schedules of the records in place of the defaults. Each tuned number
/// of rows serves the numbers that are geometrically nearer to it than to the next. The largest serves all
/// above, unless the target limits its strategy.
llvm::Expected<std::vector<codegen::Job>> selectedJobs(const Problem&, const std::string& target,
                                                       const Database&);

}  // namespace normc::tune
