// Where threads come from: the host's parallel_for, or our own pool.
//
// The pool is oneTBB, in a module of its own that is loaded when a plan first
// needs threads, so that a host that brings its own never sees it.
#pragma once

#include <string>

#include "runtime/normc.h"

namespace normc::runtime {

/// How many processors this process may use, at least 1.
int availableProcessors();

struct Threads {
  normc_parallel_for parallelFor = nullptr;  ///< null: the caller's thread alone
  void* ctx = nullptr;
  /// At most so many tasks at once; 0: the host's parallel_for decides.
  int limit = 1;
  std::string description;
};

/// The default pool; null with a reason in `why` if the module cannot be loaded. It stays loaded: a pool's
/// threads outlive the calls.
normc_parallel_for loadDefaultPool(std::string& why);

}  // namespace normc::runtime
