// Compiles a problem that no package has, in a process of its own, and keeps the result in the user's cache.
#pragma once

#include <optional>
#include <string>

namespace normc::hosts {

struct Compiler {
  std::string program;  ///< `normc`, or its path; empty: there is none
  std::string cache;    ///< a folder

  /// The package of a problem, and whether this call made it.
  struct Result {
    std::string package;
    double seconds = 0;  ///< 0: it was in the cache
    std::string error;   ///< not empty: the compiler's words, and there is no package
    bool ran = true;     ///< false: it could not be started, which may be different the next time
  };
  /// Compiles a problem for this machine, unless the cache has it. `norm` is the file of a user's norm, or
  /// empty; `source` its hash. The cache names a file by problem and source, the version of the runtime and
  /// the newest instruction set of the processor, so machines may share it. Files are renamed into it when
  /// they are complete, so any number of processes may.
  Result compile(const std::string& problem, const std::string& norm, const std::string& source) const;
};

}  // namespace normc::hosts
