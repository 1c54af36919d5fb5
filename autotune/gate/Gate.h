// The gate: is a kernel right? Nothing is timed, shipped or recorded before it
// has passed here, against the reference and at the language's own tolerance.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/gate/Call.h"
#include "dsl/HardInputs.h"

namespace normc::gate {

/// One trial: sizes, data and where the arguments lie.
struct Trial {
  Extents extents;
  HardInput data = HardInput::Normal;
  HardMask mask = HardMask::Scattered;  ///< where the problem has a mask
  int64_t step = 0;                     ///< training steps that the state has seen
  uint64_t seed = 1;
  Placement placement;

  std::string text() const;  ///< e.g. `33x128 mean1000 step=5 row_padding=3`
};

struct Verdict {
  bool ok = true;
  std::string text;       ///< what failed: the output, its worst element, the trial
  double worstRatio = 0;  ///< largest error over its bound
  std::string worstOutput;
  std::map<std::string, double> relativeError;  ///< of each output, of its magnitude
};

/// Arguments of the trial as the kernel will see them, rounded to their types. A
/// backward's saved statistics are those of the reference's forward.
Result<ReferenceCall> argumentsFor(const Problem&, const Trial&);

/// A trial with all that does not depend on the kernel: whoever judges many kernels asks once.
struct Question {
  Trial trial;
  ReferenceCall arguments;
  ReferenceResult want;
};
Result<Question> questionFor(const Problem&, const Trial&);
/// `between`: called before the second run. What it changes may change no bit.
Verdict judge(const normc_plan*, const Problem&, const Question&, const CudaDevice* where = nullptr,
              const std::function<void()>& between = {});

/// Runs the plan once and compares every output; runs it again and asks for the same bits. `where`: the
/// device of a CUDA plan; null for the host.
Verdict judge(const normc_plan*, const Problem&, const Trial&, const CudaDevice* where = nullptr);

/// The numbers by which a plan takes every call for one that does not fit in caches (docs/codegen.md), where
/// its kernel knows such calls; else none. Trials are small, so a kernel is judged through a plan without and
/// one with them.
std::vector<normc_number> numbersOfLargeCalls(const normc_plan*);

/// Trials that every kernel has to pass: hostile data, odd sizes, every placement.
/// `features` is the problem's own, or several for a kernel of any number. Up to 129 rows, fewer of more than
/// 8000 features.
std::vector<Trial> standardTrials(const Problem&, int64_t features);

}  // namespace normc::gate
