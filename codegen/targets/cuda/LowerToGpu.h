// From a planned kernel to a `gpu.module`: one entry function for each phase, with the parameters
// of runtime/abi/cuda.h.
#pragma once

#include "codegen/Pass.h"
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

/// The names of a phase's functions; `unaligned` is empty if the first serves any operands.
struct EntryNames {
  std::string aligned, unaligned;
};
EntryNames entryNames(KernelOp, PhaseOp, const Schedule&);

/// norm-to-gpu: replaces every kernel by a `gpu.module`.
PassPtr normToGpu(const Schedule&, const Arch&);

}  // namespace normc::codegen::cuda
