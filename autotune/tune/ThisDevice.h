// This machine as a Device of records, and identifiers for a run.
#pragma once

#include <string>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// Returns the processor as a device that runs code for `arch`; the same for every core that the caller may
/// use.
Device thisProcessor(const std::string& arch);

/// Returns CUDA device `index` of a driver library. Throws std::runtime_error with the driver's message. The
/// facts are compute capability, multiprocessors, L2 cache, and clock and width of the memory.
Device thisCudaDevice(int index, const std::string& cudaLibrary);

/// Returns sixteen random digits that identify the records of one run.
std::string newSession();

/// Returns the stamp of a measurement made now: milliseconds since 1970, but always later than all known
/// stamps, even if the clock went back.
int64_t newStamp(const std::vector<Record>& known);

}  // namespace normc::tune
