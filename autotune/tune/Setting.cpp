#include "autotune/tune/Setting.h"

#include <algorithm>

#include "autotune/measure/Buffers.h"
#include "autotune/measure/Machine.h"
#include "autotune/worker/TaskProblem.h"
#include "runtime/abi/Numbers.h"

namespace normc::tune {

/// Screened rows are a multiple of this, so that chunks of rows are whole, and of each thread.
static constexpr int64_t kRowStep = 256;
/// Kernels take a call whose x has so many bytes for a large one.
static constexpr auto kLeastOfX = int64_t(1.5 * kLargeBytes);

std::string whyTooLarge(const std::string& what, int64_t segments, int64_t rows, int64_t features) {
  return rows <= kMostElements / features / segments ? "" : what + " has more than 2^33 elements";
}

std::string whyTooLarge(const Task& task) {
  return whyTooLarge(task.text(), task.segments, task.rows, task.features);
}

int64_t screeningRows(const Task& task, const std::string& spec, int64_t lastCache) {
  if (task.policy == "pipeline") return 0;  // the caches would hold the output that is read
  const auto problem = problemOfTask(spec, task.problem.text());
  if (!problem) return 0;
  const int64_t ofRow = measure::Buffers::bytesOfSet(*problem, {task.segments, 1, task.features});
  const int64_t step = kRowStep * std::max<int64_t>(task.threads, 1);
  const int64_t ofX = std::max<int64_t>(task.segments * task.features * bytes(problem->data), 1);
  const int64_t least = std::max(lastCache / std::max<int64_t>(ofRow, 1), kLeastOfX / ofX) + 1;
  const int64_t rows = (least + step - 1) / step * step;
  return rows <= task.rows / 2 ? rows : 0;
}

std::string whyOutOfMemory(const Task& task, const std::string& spec, int64_t free) {
  const auto problem = problemOfTask(spec, task.problem.text());
  if (!problem) return "";
  const int64_t needed =
      2 * measure::Buffers::bytesOfSet(*problem, {task.segments, task.rows, task.features});
  if (needed <= free) return "";
  return "its tensors need about " + measure::bytesText(needed) + ", and " + measure::bytesText(free) +
         " are free";
}

}  // namespace normc::tune
