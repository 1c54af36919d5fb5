// A context: the services of the host, shared by all objects made from it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/cuda/Cuda.h"
#include "runtime/normc.h"
#include "runtime/threads/Pool.h"
#include "runtime/threads/Threads.h"

namespace normc::runtime {

class Context {
 public:
  explicit Context(const normc_context_options& options)
      : options_(options), cuda_(options.cuda_library ? options.cuda_library : "") {}

  /// Opens no driver before a device is requested.
  const Cuda& cuda() const { return cuda_; }

  /// Returns the threads for a plan. `planLimit`: the most that the request allows; 0: no limit. `useful`:
  /// the plan can use more than one. Thread-safe.
  Threads threads(int planLimit, bool useful) const;

  void log(const std::string& line) const {
    if (options_.log) options_.log(options_.log_ctx, line.c_str());
  }

 private:
  normc_context_options options_;
  Cuda cuda_;
  mutable std::mutex mutex_;            // guards what follows; never taken by execute
  mutable std::unique_ptr<Pool> pool_;  // made when a plan first wants one
};

}  // namespace normc::runtime
