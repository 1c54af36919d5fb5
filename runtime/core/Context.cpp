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
    return {options_.parallel_for, options_.parallel_for_ctx, limit, "the host's parallel_for, " + many};
  }
  const int processors = availableProcessors();
  limit = limit == 0 ? processors : std::min(limit, processors);
  if (limit == 1) return {.description = "1: the process may use one processor"};

  const std::lock_guard lock(mutex_);
  if (!poolTried_) {
    poolTried_ = true;
    pool_ = loadDefaultPool(poolProblem_);
    if (!pool_) log("normc: no thread pool, kernels run on the caller's thread: " + poolProblem_);
  }
  if (!pool_) return {.description = "1: the default pool cannot be loaded (" + poolProblem_ + ")"};
  return {pool_, nullptr, limit, "at most " + std::to_string(limit) + " of the default pool (oneTBB)"};
}

}  // namespace normc::runtime
