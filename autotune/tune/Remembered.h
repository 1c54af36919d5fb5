// The points of a landscape in records: what was measured and chosen before.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "autotune/search/Decide.h"
#include "autotune/search/Lab.h"
#include "autotune/search/Landscape.h"
#include "autotune/tune/Setting.h"

namespace normc::tune {

/// Returns the choice for this task on this device with this toolchain, and its point: the newest valid one.
/// Null if there is none.
std::pair<const Record*, size_t> choiceOf(const Landscape&, const std::vector<Record>&, const Setting&);

/// Returns the conclusion of a record for a decision.
Conclusion conclusionOf(const Decision&);

/// Returns the recorded results of points that were screened before, on this device with this toolchain. The
/// newest record of a point decides whether it was rejected.
std::map<size_t, Screened> rememberedFrom(const Landscape&, const std::vector<Record>&, const Setting&);

}  // namespace normc::tune
