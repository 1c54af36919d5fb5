// What a search learns from the choices of earlier runs.
#pragma once

#include <vector>

#include "autotune/tune/LiveLab.h"

namespace normc::tune {

/// Adds to the options what records say: the choice for this very task is the incumbent, and the choices for
/// other sizes of the same norm, entry and data type are hints, the nearest first.
void addHints(const Landscape&, const std::vector<Record>&, const Setting&, SearchOptions&);

}  // namespace normc::tune
