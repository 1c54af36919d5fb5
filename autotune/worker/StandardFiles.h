// Standard streams that are closed are opened by whatever file comes next, which would then be read and
// written as input, report and log.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace normc::tune {

/// What main begins with. A stream that was closed stays one that cannot be used.
inline void reserveStandardFiles() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (fcntl(file, F_GETFD) < 0) (void)!open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace normc::tune
