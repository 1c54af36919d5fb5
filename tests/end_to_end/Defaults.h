// The default kernels of many problems, for every instruction set that this processor runs, judged by the
// gate.
//
// `normc_judge_defaults` does it for all of them; DefaultsTest.cpp for a fixed sample.
#pragma once

#include <string>
#include <vector>

#include "codegen/Target.h"

namespace normc {

/// Verdicts of the gate on many kernels.
struct Judged {
  int64_t kernels = 0;  ///< a kernel judged as a large call too counts once
  int64_t trials = 0;
  double worstRatio = 0;           ///< the largest error over what is allowed
  std::string worst;               ///< the kernel that has it
  std::vector<std::string> wrong;  ///< problem, target and schedule, with what was wrong
};

/// Judges each default of the problem, which has a number of features, for each target.
void judgeDefaults(const Problem&, const std::vector<codegen::TargetPtr>&, Judged&);

/// The sets of x86-64 that this processor runs, each without a core and with the one of this machine, from
/// `generator`.
std::vector<codegen::TargetPtr> runnableTargets(const std::string& generator);

/// Powers of two from 32 to 16384, their neighbours, and some that models have.
std::vector<int64_t> manyFeatures();

}  // namespace normc
