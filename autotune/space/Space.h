// All legal schedules of a problem, of every generator, as a landscape.
//
// Values come from each target's knobs, legality from its whyIllegal, the order
// from its prediction: nothing here knows what a knob means.
#pragma once

#include "autotune/search/Landscape.h"
#include "codegen/Target.h"
#include "dsl/Result.h"

namespace normc::tune {

/// `generators` as findGenerators gives them, the one of the defaults first. An error says why there is no
/// legal schedule at all.
Result<Landscape> landscapeOf(const std::vector<codegen::TargetPtr>& generators, const Problem&,
                              const codegen::Load&);

/// The schedule that a package would serve these sizes with, untuned; the target has one.
std::string defaultFor(const codegen::Target&, const Problem&, const codegen::Load&);

/// The text of one point of a space.
std::string scheduleAt(const codegen::KnobSpace&, const std::vector<int>& places);

}  // namespace normc::tune
