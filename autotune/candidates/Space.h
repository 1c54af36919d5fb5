// All legal schedules of a problem, of every generator, as a landscape.
//
// The bound target gives the values of knobs, legality and predictions; this file does not know the meaning
// of a knob.
#pragma once

#include "autotune/search/Landscape.h"
#include "codegen/Target.h"
#include "dsl/Result.h"

namespace normc::tune {

/// Returns all legal schedules. `generators`: as findGenerators returns them, the generator of the defaults
/// first. An error has the reason why there is no legal schedule.
Result<Landscape> landscapeOf(const std::vector<codegen::TargetPtr>& generators, const Problem&,
                              const codegen::Workload&);

/// Returns the schedule that a package without tuning uses for these sizes. Requires that the target has one.
std::string defaultFor(codegen::BoundTarget&, const codegen::Workload&);

}  // namespace normc::tune
