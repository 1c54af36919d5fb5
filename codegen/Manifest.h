// Derives the manifest entry of one kernel from the IR (docs/package-format.md): the part that all targets
// have in common.
#pragma once

#include <functional>

#include "codegen/dialect/Norm.h"
#include "codegen/package/Writer.h"
#include "dsl/Problem.h"

namespace normc::codegen {

/// The part that a target decides: the division of the units of a phase into tasks, and the traffic of its
/// kernel.
struct Partition {
  std::function<void(PhaseOp, package::Phase&)> cut;
  std::function<package::Traffic(bool warmup)> traffic;
};

/// Returns the entry without `blob` and `norm`, which depend on the whole package, and without the members
/// that the target adds.
package::Kernel manifestOf(const Problem&, std::string schedule, KernelOp, const Partition&);

/// True if the phase reads or writes X-sized data.
bool hasSweeps(PhaseOp);
/// True if the tasks of the phase write partial sums to a workspace, for a later phase.
bool leavesPartials(PhaseOp, KernelOp);
/// Returns the shape of the partial sums that the phase adds up for one feature.
package::Shape partialsOf(PhaseOp);

}  // namespace normc::codegen
