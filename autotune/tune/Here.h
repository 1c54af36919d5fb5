// This machine as records know it, and a name for what is measured now.
#pragma once

#include <string>

#include "autotune/records/Record.h"

namespace normc::tune {

/// The processor, running code for `arch`.
Device processorHere(const std::string& arch);

/// Sixteen random digits: the records of one run.
std::string newSession();

}  // namespace normc::tune
