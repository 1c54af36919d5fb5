// The trials of one kernel of a package, and what became of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autotune/cli/PackageFile.h"
#include "autotune/gate/Gate.h"

namespace normc::cli {

struct KernelVerdict {
  size_t kernel = 0;
  int64_t trials = 0;
  int64_t failed = 0;
  double worstRatio = 0;  ///< largest error over its bound, of the trials that passed
  std::string worstOutput;
  std::vector<std::string> failures;  ///< the first few, in words
  std::string skipped;                ///< why it was not tried; empty if it was
};

/// The feature counts to try a kernel of any number with: 1, 7, 8, 64, 100, 768 and, where
/// these do not divide into its groups, multiples of them.
std::vector<int64_t> featureCounts(const Problem&);

/// Tries the kernel wherever the runtime would choose it: through a plan for its own problem, capped at
/// its instruction set, with the rows of each trial where the kernel has limits. `features` narrows
/// a kernel of any number to one. Ends early where `stop` says so.
KernelVerdict judgeKernel(const PackageFile&, size_t kernel, std::optional<int64_t> features,
                          const std::function<bool()>& stop);

}  // namespace normc::cli
