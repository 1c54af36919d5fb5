// Where the threads of a plan come from: the host's parallel_for, or a pool of our own.
#pragma once

#include <string>

#include "runtime/normc.h"

namespace normc::runtime {

class Pool;

/// How many processors this process may use, at least 1.
int availableProcessors();

/// Neither of both: the caller's thread alone.
struct Threads {
  Pool* pool = nullptr;                      ///< the context's
  normc_parallel_for parallelFor = nullptr;  ///< the host's
  void* ctx = nullptr;
  /// At most so many at once; 0: the host's parallel_for decides.
  int limit = 1;
  std::string description;

  bool none() const { return !pool && !parallelFor; }
};

}  // namespace normc::runtime
