// This machine as records know it, and a name for what is measured now.
#pragma once

#include <string>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// The processor, running code for `arch`; the same whichever of its cores the caller may use.
Device thisProcessor(const std::string& arch);

/// CUDA device `index` behind a driver library. Throws std::runtime_error with what the driver says. The
/// facts: compute capability, multiprocessors, second-level cache.
Device thisCudaDevice(int index, const std::string& cudaLibrary);

/// Sixteen random digits: the records of one run.
std::string newSession();

/// Of what is measured now: milliseconds since 1970, and later than all that is known, whatever the clock
/// says.
int64_t newStamp(const std::vector<Record>& known);

}  // namespace normc::tune
