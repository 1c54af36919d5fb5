// The knobs that the tuner tries on a GPU, and a model of time that orders their values.
#pragma once

#include "codegen/Tuning.h"
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Schedule.h"
#include "codegen/targets/cuda/Traits.h"

namespace normc::codegen::cuda {

KnobSpace knobSpace(const KernelTraits&, const Arch&, Strategy);

/// Returns a relative time: the bytes moved over the share of the bandwidth that the loads in flight can use.
double predict(const KernelTraits&, const Schedule&, const Arch&, const Workload&);

/// Returns how threads are spread, and where runs are on the chip: "warp", "block cluster bulk", "columns
/// held grid".
std::string family(const KernelTraits&, const Schedule&);

}  // namespace normc::codegen::cuda
