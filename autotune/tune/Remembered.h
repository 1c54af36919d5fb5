// The points of a landscape in records: what was measured and chosen before.
#pragma once

#include <map>
#include <vector>

#include "autotune/search/Decide.h"
#include "autotune/search/Lab.h"
#include "autotune/search/Landscape.h"
#include "autotune/tune/Setting.h"

namespace normc::tune {

/// What earlier tunings of a task chose, on this device with this toolchain.
struct Earlier {
  const Record* choice = nullptr;  ///< the newest valid one whose schedule the landscape has; null: none
  size_t point = 0;                ///< its schedule
  bool absentWin = false;          ///< a newer one is a win of a schedule that the landscape lacks
};

/// Returns the choice of records for the task of a setting.
Earlier choiceOf(const Landscape&, const std::vector<Record>&, const Setting&);

/// Returns the conclusion of a record for a decision.
Conclusion conclusionOf(const Decision&);

/// Returns the recorded results of points that were screened before, on this device with this toolchain. The
/// newest record of a point decides whether it was rejected.
std::map<size_t, Screened> rememberedFrom(const Landscape&, const std::vector<Record>&, const Setting&);

}  // namespace normc::tune
