// The threads of a plan: the host's parallel_for, or the runtime's pool.
#pragma once

#include <string>

#include "runtime/normc.h"

namespace normc::runtime {

class Pool;

/// Returns the number of processors that this process may use, at least 1.
int availableProcessors();

/// At most one of both sources; with none, a call runs on the caller's thread.
struct Threads {
  Pool* pool = nullptr;                      ///< the context's
  normc_parallel_for parallelFor = nullptr;  ///< the host's
  void* ctx = nullptr;
  /// The most threads at once; 0: the host's parallel_for decides.
  int limit = 1;
  std::string description;

  bool none() const { return !pool && !parallelFor; }
};

}  // namespace normc::runtime
