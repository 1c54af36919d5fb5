// What is worth trying on a GPU, and which of it first.
#pragma once

#include "codegen/Tuning.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

KnobSpace knobSpace(const Form&, const Arch&, Strategy);

/// Relative time: bytes that move, by how much of the device's bandwidth the loads under way can use.
double predict(const Form&, const Schedule&, const Arch&, const Workload&);

/// How threads are spread, and where runs lie on the chip: "warp", "block cluster bulk", "columns held grid".
std::string family(const Form&, const Schedule&);

}  // namespace normc::codegen::cuda
