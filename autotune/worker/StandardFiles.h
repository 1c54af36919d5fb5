// Keeps the descriptors of closed standard streams reserved. Otherwise the next opened file would take their
// number, and would be used as input, output and log.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace normc::tune {

/// Must be called first in main. A closed stream stays unusable.
inline void reserveStandardFiles() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (fcntl(file, F_GETFD) < 0) (void)!open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace normc::tune
