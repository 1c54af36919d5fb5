// What is tuned and chosen for: this machine, its fingerprint, and the generators that make code for it.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/Machine.h"
#include "autotune/tune/Choose.h"
#include "codegen/Target.h"

namespace normc::tune {

struct Hardware {
  measure::Machine machine;
  std::vector<codegen::TargetPtr> generators;  ///< the one of the defaults first
  Site site;                                   ///< this machine, running code of the target

  codegen::Workload workloadOf(const Task&) const;
};

/// Returns the machine as it is and the generators of a target, named as in findTarget; of a GPU only what
/// code is made for.
llvm::Expected<Hardware> hardwareFor(const std::string& target);

/// True if this processor runs code for the target; sets of one family include the older ones.
bool runsHere(const std::string& target);

}  // namespace normc::tune
