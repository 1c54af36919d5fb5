#include "runtime/threads/Threads.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace normc::runtime {

int availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)  // more processors than the set has bits
    return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace normc::runtime
