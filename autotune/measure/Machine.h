// The machine that a figure was measured on, read from the system.
#pragma once

#include <algorithm>
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

  /// Returns the number of threads that a call runs on if it may use so many: no more than there are
  /// processors, as in the runtime. 0: one for each processor.
  int64_t threadsFor(int64_t most) const {
    return most == 0 ? processors : std::min<int64_t>(most, processors);
  }
  std::string text() const;
};

/// Throws std::system_error if what the system says of it cannot be read now.
Machine thisMachine();

/// Returns `32 MiB` for 33554432.
std::string bytesText(int64_t bytes);

}  // namespace normc::measure
