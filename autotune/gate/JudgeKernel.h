// The trials of one kernel of a package, and what became of them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/Gate.h"
#include "autotune/gate/PackageFile.h"

namespace normc::gate {

struct KernelVerdict {
  size_t kernel = 0;
  int64_t trials = 0;
  int64_t shortened = 0;  ///< of them, with fewer rows than the standard trial has
  int64_t failed = 0;
  double worstRatio = 0;  ///< largest error over its bound
  std::string worstOutput;
  std::vector<std::string> failures;  ///< the first few, in words
  std::string skipped;                ///< why it was not tried; empty if it was
  bool emulated = false;
  bool deviceLost = false;  ///< a trial ended the device's context: nothing more runs there
};

/// How a kernel is tried.
struct Judging {
  std::optional<int64_t> features;                    ///< narrows a kernel of any number to one
  std::function<bool()> stop = [] { return false; };  ///< ends early
  const CudaDevice* device = nullptr;                 ///< where; null for the CPU
  /// A trial of more elements has as many rows less, down to one.
  int64_t maxElements = std::numeric_limits<int64_t>::max();
  /// Asked after each trial for what was seen beside the numbers; empty if nothing was wrong.
  std::function<std::string()> observed = [] { return std::string(); };
};

/// Tries the kernel through a plan for its own problem, capped at its instruction set. A kernel that has
/// limits, or that the runtime never chooses, is tried in a package of its own, without limits. A kernel of
/// any number of features is tried with 1, 7, 8, 64, 100, 768 or, where these do not divide into its groups,
/// multiples of them, and in few rows with 1100 and 17000, or a little less. Ends with the first trial that
/// loses the device. The error is of the kernel's problem.
Result<KernelVerdict> judgeKernel(const PackageFile&, size_t kernel, const Judging&);

}  // namespace normc::gate
