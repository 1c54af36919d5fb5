// This machine as records know it, and a name for what is measured now.
#pragma once

#include <string>

#include "autotune/records/Record.h"

namespace normc::tune {

/// The processor, running code for `arch`.
Device processorHere(const std::string& arch);

/// CUDA device `index` behind a driver library. Throws std::runtime_error with what the driver says. The
/// facts: compute capability, multiprocessors, second-level cache.
Device cudaDeviceHere(int index, const std::string& cudaLibrary);

/// Sixteen random digits: the records of one run.
std::string newSession();

}  // namespace normc::tune
