// What is tuned and chosen for: this machine, its fingerprint, and who makes code for it.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/Machine.h"
#include "autotune/tune/Choose.h"
#include "codegen/Target.h"
#include "tools/normc/Place.h"

namespace normc::cli {

struct Hardware {
  measure::Machine machine;
  std::vector<codegen::TargetPtr> generators;  ///< the one of the defaults first
  tune::Site site;                             ///< this machine, running code of the target

  codegen::Workload workloadOf(const tune::Task&) const;
};

/// `target` as in findTarget, and the machine as it is; of a GPU only what code is made for.
Hardware hardwareFor(const std::string& target);
/// Where --device is: with `host` as the target, a CUDA device has the architecture that it is.
Hardware hardwareFor(const std::string& target, const Place&);

/// What stands behind --target: one of targetNames(), with or without a core behind a colon, or any architecture of a GPU.
/// A Failure that suggests the nearest name otherwise; a core is judged by findTarget.
std::string targetWord(const std::string& target);

/// Whether this processor runs code for the target; sets of one family include the older ones.
bool runsHere(const std::string& target);

}  // namespace normc::cli
