// Ratios of many heats in one table: a line for each problem, a column for each number of features.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu/Heat.h"

namespace normc::bench {

/// Returns the time of our kernels over that of a peer, at each number of features and as geometric mean with
/// its interval; empty if the peer did not run.
std::string shapeTable(const std::vector<Heat>&, Runner peer);

/// Returns the tables of all peers, if a norm ran apart from what surrounds it; else an empty text.
std::string shapeTables(const std::vector<Heat>&);

}  // namespace normc::bench
