// The gate: checks whether a kernel is correct. Only kernels that passed it are timed, shipped or recorded.
// Results are compared with the reference, at the tolerance of the norm.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "autotune/gate/Call.h"
#include "autotune/gate/Trials.h"

namespace normc::gate {

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
/// Judges the plan, which has the numbers of the trial. `between` is called before the second run; its
/// changes must not change a bit of the result.
Verdict judge(const normc_plan*, const Problem&, const Question&, const CudaDevice* where = nullptr,
              const std::function<void()>& between = {});

/// Runs the plan once and compares every output; runs it again and requires the same bits. `where`: the
/// device of a CUDA plan; null for the host.
Verdict judge(const normc_plan*, const Problem&, const Trial&, const CudaDevice* where = nullptr);

}  // namespace normc::gate
