// Workspace over which blocks of a grid meet that share columns (`grid`, Schedule.h).
//
//   arrivals   i64 [task][block]     how many meetings each block has come to; zero when the kernel begins
//   parts      what each block knows of a sum: of columns [sum][block][feature], every place written once a launch;
//              of lines [task][step, in turn one of two][sum][team][block]
//
// TeamGrid.cpp writes and reads them; an operand whose access is `zeroed` is cleared by
// the runtime before every launch, in the order of its stream, so that a call leaves
// nothing behind that the next would rely on.
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

llvm::StringRef barrierCountsName();
llvm::StringRef partsName();

/// Adds both to a kernel whose schedule spreads columns or lines over a grid.
void addGridBarrier(KernelOp, const Schedule&);

/// Whether blocks write the tensor for each other.
bool belongsToGridBarrier(TensorOp);

}  // namespace normc::codegen::cuda
