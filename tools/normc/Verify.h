// Choices of records, measured again on this machine.
#pragma once

#include <string>
#include <vector>

#include "tools/normc/ExitCode.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// Races each schedule that won on this device with this toolchain against its default, in new rounds, and
/// adds what it finds to the file. Of several for one task those that count. CheckFailed where one is slower
/// by more than 2 %, or does not pass the gate. A record holds the hash of its norm, not the text: `norms`
/// are files that hold those which are not built in. `wait`: the longest wait of a choice for a core without
/// other load, in seconds.
ExitCode verifyRecords(const std::string& file, const std::vector<std::string>& norms, double wait, Output&);

}  // namespace normc::cli
