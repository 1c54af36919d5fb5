// From blocks of vector, math, arith and memref operations to the LLVM dialect.
#pragma once

#include "codegen/Pass.h"

namespace normc::codegen::cpu {

/// Returns the pass `blocks-to-llvm`. It fails if an operation has no counterpart in LLVM.
PassPtr blocksToLlvm();

}  // namespace normc::codegen::cpu
