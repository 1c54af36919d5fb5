// The schedule becomes a part of the kernel, so that lowering reads only the module.
#pragma once

#include "codegen/Pass.h"
#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// norm-attach-schedule: sets the schedule of every kernel. If it streams large calls, the sizes from which
/// on a call is large become scalar parameters, after those of the spec.
PassPtr attachSchedule(const Schedule&);

}  // namespace normc::codegen::cpu
