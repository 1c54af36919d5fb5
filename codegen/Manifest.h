// The entry of one kernel in a package, read off the IR (docs/package-format.md): the part that is the same
// for every target.
#pragma once

#include <functional>

#include "codegen/dialect/Norm.h"
#include "codegen/package/Writer.h"
#include "dsl/Problem.h"

namespace normc::codegen {

/// The part that a target decides: how it cuts the units of a phase into tasks, and what its kernel moves.
struct Partition {
  std::function<void(PhaseOp, package::Phase&)> cut;
  std::function<package::Traffic(bool warmup)> traffic;
};

/// Returns the entry without `blob` and `norm`, which the package as a whole decides, and without what the
/// target adds.
package::Kernel manifestOf(const Problem&, std::string schedule, KernelOp, const Partition&);

/// True if the phase goes over X-sized data.
bool hasSweeps(PhaseOp);
/// True if the tasks of the phase leave sums in a workspace that a later phase adds up.
bool leavesPartials(PhaseOp, KernelOp);
/// Returns the tasks whose partials a feature of the phase adds up.
package::Shape partialsOf(PhaseOp, KernelOp);

}  // namespace normc::codegen
