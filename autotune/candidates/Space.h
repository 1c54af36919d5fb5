// All legal schedules of a problem, of every generator, as a landscape.
//
// A bound target gives the values of knobs, which schedules are legal, and predictions: nothing here knows
// what a knob means. The text of a schedule is read once.
#pragma once

#include "autotune/search/Landscape.h"
#include "codegen/Target.h"
#include "dsl/Result.h"

namespace normc::tune {

/// `generators` as findGenerators gives them, the one of the defaults first. An error says why there is no
/// legal schedule at all.
Result<Landscape> landscapeOf(const std::vector<codegen::TargetPtr>& generators, const Problem&,
                              const codegen::Workload&);

/// Returns the schedule that a package would serve these sizes with, untuned. The target has one.
std::string defaultFor(codegen::BoundTarget&, const codegen::Workload&);

/// The text of one point of a space.
std::string scheduleAt(const codegen::KnobSpace&, const std::vector<int>& places);

}  // namespace normc::tune
