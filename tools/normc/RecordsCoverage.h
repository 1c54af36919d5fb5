// Lists the choices of a database that count, by device and problem.
#pragma once

#include "autotune/records/Database.h"
#include "tools/normc/ExitCode.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// Lists, for each device and each problem without its sizes, for which features and rows there is a choice
/// that counts (autotune/records/Standing.h), and which features other devices alone have. Norms of one name
/// are told apart by their hash.
ExitCode showCoverage(const tune::Database&, Output&);

}  // namespace normc::cli
