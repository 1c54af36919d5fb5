// What codes and pairs of an output change in a default schedule.
#pragma once

#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// Changes a schedule of the norm alone so that it suits codes (`quantize`) and pairs (`rope`) of its output.
void fitClauses(const Problem&, Schedule&);

}  // namespace normc::codegen::cpu
