// What a figure was measured on, read from the system.
#pragma once

#include <cstdint>
#include <string>

namespace normc::measure {

struct Machine {
  std::string processor;    ///< its model, as the system names it
  int processors = 1;       ///< that this thread may use
  int online = 1;           ///< that there are
  int64_t secondCache = 0;  ///< bytes of the second-level cache of one core
  int64_t lastCache = 0;    ///< bytes of the largest cache
  int64_t memory = 0;       ///< bytes that are available now

  std::string text() const;
};

Machine thisMachine();

/// `33554432` as `32 MiB`.
std::string bytesText(int64_t bytes);

}  // namespace normc::measure
