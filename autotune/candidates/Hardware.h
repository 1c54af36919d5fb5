// The hardware to tune for: this machine, its description in records, and the generators of code for it.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/Machine.h"
#include "autotune/tune/Choose.h"
#include "codegen/Target.h"

namespace normc::tune {

struct Hardware {
  measure::Machine machine;
  std::vector<codegen::TargetPtr> generators;  ///< the generator of the defaults first
  Site site;                                   ///< this machine, with the architecture of the target

  codegen::Workload workloadOf(const Task&) const;
};

/// Returns this machine and the generators of a target, named as in findTarget. For a GPU it has only the
/// architecture that code is compiled for.
llvm::Expected<Hardware> hardwareFor(const std::string& target);

/// True if this processor runs code for the target, i.e. supports its instruction set.
bool runsHere(const std::string& target);

}  // namespace normc::tune
