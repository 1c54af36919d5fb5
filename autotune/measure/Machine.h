// The machine that a figure was measured on, read from the system.
#pragma once

#include <cstdint>
#include <string>

namespace normc::measure {

struct Machine {
  std::string processor;    ///< its model, as the system names it
  int processors = 1;       ///< processors that this thread may use
  int online = 1;           ///< processors of the machine
  int64_t secondCache = 0;  ///< bytes of the second-level cache of one core
  int64_t lastCache = 0;    ///< bytes of the largest cache
  int64_t memory = 0;       ///< bytes that are available now

  std::string text() const;
};

/// Throws std::system_error if what the system says of it cannot be read now.
Machine thisMachine();

/// Returns `32 MiB` for 33554432.
std::string bytesText(int64_t bytes);

}  // namespace normc::measure
