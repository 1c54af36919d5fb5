// Fewer launches: phases over vectors that a neighbour can do on the way.
//
//   prepare   per-feature factors from state and parameters, with no sum behind them:
//             each block computes those of its own columns, in registers
//   advance   the step count: the first block of the phase before sets it, where
//             that phase does not read it
//
// What is moved into a phase over rows must happen for no rows as well, so such a
// phase always has a block.
#pragma once

#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

/// On a planned kernel, before anything asks for its phases. The schedule is legal.
void fusePhases(KernelOp, const Schedule&);

/// Of a slab over features: computed by each block for its own columns, kept in registers.
llvm::StringRef hoistedAttrName();
/// Of a phase: blocks that it has at least.
llvm::StringRef leastBlocksAttrName();

}  // namespace normc::codegen::cuda
