// Start points of a search from the choices of earlier runs.
#pragma once

#include <vector>

#include "autotune/tune/LiveLab.h"

namespace normc::tune {

/// Adds to the options what the records hold: the choice for the same task becomes the incumbent, and choices
/// for other sizes of the same norm, entry and data type become hints, the nearest first.
void addHints(const Landscape&, const std::vector<Record>&, const Setting&, SearchOptions&);

}  // namespace normc::tune
