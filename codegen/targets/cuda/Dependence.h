// Programmatic dependent launch: a phase begins while the one before it still runs,
// so that what a launch costs hides behind it (sm_90 and newer).
//
//   wait      the first instruction of a dependent phase: until the phase before has
//             ended and its stores are seen. Nothing of the call is touched earlier.
//   trigger   the second, where the next phase is a dependent one: its blocks may
//             come as soon as all of this phase have begun, and room is left
//
// A wait covers one launch. In a chain A -> B -> C, C may read what A wrote because
// no block of B ends, nor triggers, before it has waited for A: hence this order, and
// a wait in every thread, whatever the phase reads.
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/targets/cuda/Arch.h"
#include "llvm/ADT/DenseSet.h"

namespace normc::codegen::cuda {

/// True if the phase is launched as one that waits for the phase before it.
bool isDependent(PhaseOp, const Arch&);

/// Begins the code of a phase: its wait, its trigger, or nothing.
void beginPhase(mlir::OpBuilder&, PhaseOp, const Arch&);

/// Tensors that the phase writes.
llvm::DenseSet<llvm::StringRef> writtenIn(PhaseOp);

/// Tensors that change while the kernel of this phase is there: those it writes, and those that the phase
/// before it still writes when it begins. LLVM may neither assume that they alias nothing nor read them
/// through a cache that keeps old values.
llvm::DenseSet<llvm::StringRef> changingIn(PhaseOp, const Arch&);

}  // namespace normc::codegen::cuda
