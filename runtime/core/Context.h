// What the host provides. Shared by everything made from it.
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

  /// Opens nothing before somebody asks for a device.
  const Cuda& cuda() const { return cuda_; }

  /// The threads for a plan that asks for at most `planLimit` (0: no wish) and can use more than one, or not.
  Threads threads(int planLimit, bool useful) const;

  void log(const std::string& line) const {
    if (options_.log) options_.log(options_.log_ctx, line.c_str());
  }

 private:
  normc_context_options options_;
  Cuda cuda_;
  mutable std::mutex mutex_;  // guards what follows; never taken by execute
  mutable std::unique_ptr<Pool> pool_;  // made when a plan first wants one
};

}  // namespace normc::runtime
