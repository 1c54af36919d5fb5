// The gate: checks whether a kernel is correct. Only kernels that passed it are timed, shipped or recorded.
// Results are compared with the reference, at the tolerance of the norm.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/Call.h"
#include "dsl/HardInputs.h"

namespace normc::gate {

/// One trial: sizes, data and the placement of arguments.
struct Trial {
  Extents extents;
  HardInput data = HardInput::Normal;
  HardMask mask = HardMask::Scattered;  ///< used if the problem has a mask
  bool nanPadding = false;              ///< padded rows that are left out hold NaN
  int64_t step = 0;                     ///< training steps before this one, for the state
  bool farState = false;                ///< running statistics are far from those of the batch
  uint64_t seed = 1;
  Placement placement;

  std::string text(const Problem&) const;  ///< e.g. `33x128 mean1000 step=5 row_padding=3 seed=1`
};

struct Verdict {
  bool ok = true;
  std::string text;       ///< what failed: the output, its worst element, the trial
  double worstRatio = 0;  ///< largest error relative to its bound
  std::string worstOutput;
  std::map<std::string, double> relativeError;  ///< of each output, relative to its magnitude
};

/// Returns the arguments of the trial, rounded to their types as the kernel reads them. The saved statistics
/// of a backward are those of the reference's forward.
Result<ReferenceCall> argumentsFor(const Problem&, const Trial&);

/// A trial with all that does not depend on the kernel; computed once to judge many kernels.
struct Question {
  Trial trial;
  ReferenceCall arguments;
  ReferenceResult want;
};
Result<Question> questionFor(const Problem&, const Trial&);
/// Judges the plan. `between` is called before the second run; its changes must not change a bit of the
/// result.
Verdict judge(const normc_plan*, const Problem&, const Question&, const CudaDevice* where = nullptr,
              const std::function<void()>& between = {});

/// Runs the plan once and compares every output; runs it again and requires the same bits. `where`: the
/// device of a CUDA plan; null for the host.
Verdict judge(const normc_plan*, const Problem&, const Trial&, const CudaDevice* where = nullptr);

/// Returns the numbers that make a plan treat every call as too large for the caches (docs/codegen.md); empty
/// if its kernel has no such variant. Trials are small, so a kernel is judged through two plans, one without
/// and one with these numbers.
std::vector<normc_number> numbersOfLargeCalls(const normc_plan*);

/// Returns the trials that every kernel has to pass: extreme data, odd sizes, every placement. `features` is
/// the problem's own number, or one of several for a kernel of any number. A trial has up to 129 rows, fewer
/// above 8000 features.
std::vector<Trial> standardTrials(const Problem&, int64_t features);

/// Returns a trial with more rows, so that sums of several tasks are folded also where a task has hundreds of
/// short rows; nothing if rows are so long that standard trials have several tasks.
std::optional<Trial> trialOfManyTasks(const Problem&, int64_t features);

}  // namespace normc::gate
