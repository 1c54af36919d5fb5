#include "runtime/core/Context.h"

#include <algorithm>

namespace normc::runtime {

Threads Context::threads(int planLimit, bool useful) const {
  int limit = options_.max_threads;
  if (planLimit > 0) limit = limit > 0 ? std::min(limit, planLimit) : planLimit;
  if (limit == 1) return {.description = "1, as asked for"};
  if (!useful) return {.description = "1: no phase of this kernel is ever cut"};

  if (options_.parallel_for) {
    const std::string many = limit == 0 ? "as many as it likes" : "at most " + std::to_string(limit);
    return {.parallelFor = options_.parallel_for,
            .ctx = options_.parallel_for_ctx,
            .limit = limit,
            .description = "the host's parallel_for, " + many};
  }
  const int processors = availableProcessors();
  limit = limit == 0 ? processors : std::min(limit, processors);
  if (limit == 1) return {.description = "1: the process may use one processor"};

  std::unique_lock lock(mutex_);
  if (!pool_) {
    const int most = options_.max_threads > 0 ? std::min(options_.max_threads, processors) : processors;
    pool_ = std::make_unique<Pool>(most - 1);
    lock.unlock();  // the host's function may call the library
    if (pool_->workers() < most - 1)
      log("normc: the system gives " + std::to_string(pool_->workers()) + " threads of " +
          std::to_string(most - 1) + ", others are done without");
  }
  if (pool_->workers() == 0) return {.description = "1: the system gives no more"};
  limit = std::min(limit, pool_->workers() + 1);
  return {
      .pool = pool_.get(), .limit = limit, .description = "at most " + std::to_string(limit) + " of our own"};
}

}  // namespace normc::runtime
