// From a planned kernel to a `gpu.module`: one entry function for each phase, with the parameters
// of runtime/abi/cuda.h.
#pragma once

#include "codegen/targets/cuda/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace normc::codegen::cuda {

/// The names of a phase's functions; `unaligned` is empty if the first serves any operands.
struct EntryNames {
  std::string aligned, unaligned;
};
EntryNames entryNames(KernelOp, PhaseOp, const Schedule&);

/// Replaces the kernel by a `gpu.module`.
mlir::gpu::GPUModuleOp lowerToGpu(KernelOp, const Schedule&, const Arch&);

}  // namespace normc::codegen::cuda
