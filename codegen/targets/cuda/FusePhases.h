// Fewer launches: moves the work of phases over features into a neighbouring phase.
//
//   prepare   per-feature factors from state and parameters, with no sum behind them:
//             each block computes those of its own columns, in registers
//   advance   the step count: the first block of the phase before sets it, where
//             that phase does not read it
//
// Work that is moved into a phase over rows must happen for no rows as well, so such a
// phase always has a block.
#pragma once

#include "codegen/Pass.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

/// norm-fuse-phases: changes planned kernels, before their phases are used. The schedule is legal.
PassPtr fusePhases(const Schedule&);

/// Returns the attribute of a slab over features that each block computes for its own columns and keeps in
/// registers.
llvm::StringRef hoistedAttrName();
/// Returns the attribute of a phase that has at least that many blocks.
llvm::StringRef leastBlocksAttrName();

}  // namespace normc::codegen::cuda
