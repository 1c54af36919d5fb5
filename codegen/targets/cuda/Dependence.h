// Programmatic dependent launch: the blocks of a phase begin as soon as those of the phase before it have
// ended, so that what a launch costs hides behind it (sm_90 and newer).
//
// The first instruction of a dependent phase waits until the phase before has ended and its stores are seen.
// Nothing of the call is touched earlier. A wait covers one launch. In a chain A -> B -> C, C may read what A
// wrote because no block of B ends before it has waited for A: hence a wait in every thread, whatever the
// phase reads.
//
// A brief phase lets the next one begin earlier (`griddepcontrol.launch_dependents`): after its own wait, so
// that the chain holds. On an H200 that saves half a microsecond of a kernel of ten. Of longer ones the
// blocks that are there and wait made backward passes up to 5 % slower; such a phase lets the last one begin
// when a block has read its last rows, which saves up to 4 % of 15 us and costs up to 1 %.
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Schedule.h"
#include "llvm/ADT/DenseSet.h"

namespace normc::codegen::cuda {

/// True if the phase is launched as one that waits for the phase before it.
bool isDependent(PhaseOp, const Arch&);

/// True if the phase lets the last one begin when a block has read its last rows.
bool endsEarly(PhaseOp, const Arch&);

/// Begins the code of a phase: its wait, or nothing.
void beginPhase(mlir::OpBuilder&, PhaseOp, const Arch&);

/// Returns the units of a task below which the phase lets the next one begin early; nothing if it never does.
/// A phase without sweeps always does.
std::optional<int64_t> briefUnits(PhaseOp, const Schedule&, const Arch&);

/// Tensors that the phase writes.
llvm::DenseSet<llvm::StringRef> writtenIn(PhaseOp);

/// Tensors that change while the kernel of this phase is there: those it writes, and those that the phase
/// before it still writes when it begins. LLVM may neither assume that they alias nothing nor read them
/// through a cache that keeps old values.
llvm::DenseSet<llvm::StringRef> changingIn(PhaseOp, const Arch&);

}  // namespace normc::codegen::cuda
