// The exported functions of a kernel object. Each has the signature of runtime/abi/kernel.h, unpacks its
// arguments and calls a lowered phase function.
#pragma once

#include "codegen/Pass.h"

namespace normc::codegen::cpu {

/// Returns the attribute of a phase function: for each tensor, true if its strides are parameters.
llvm::StringRef stridedAttrName();

/// add-entry-points: adds one `void KERNEL_PHASE(const normc_kernel_args*, int64_t task)` for each phase
/// function `KERNEL.PHASE` of a module that is already in the LLVM dialect.
PassPtr addEntryPoints();

}  // namespace normc::codegen::cpu
