// Work that does not fit into memory is refused before it begins.
#pragma once

#include <string>

#include "autotune/measure/Machine.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// Fails if `what`, in words, needs more bytes than are free.
inline void requireMemory(const std::string& what, int64_t needed) {
  const int64_t there = measure::thisMachine().memory;
  if (needed > there)
    throw refused(what + " needs about " + bytesText(double(needed)) + ", and " + bytesText(double(there)) +
                  " are free");
}

}  // namespace normc::cli
