// Heats as text for people and as JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autotune/measure/Machine.h"
#include "bench/cpu/Heat.h"

namespace normc::bench {
using namespace measure;

/// Ratio columns: to the peers, and to two of our own norms.
std::string table(const Heat&);

/// Geometric means over features, of everything that ran against a peer.
std::string summary(const std::vector<Heat>&);

/// Numbers of features that are multiples of this have rows of whole cache lines, vectors and steps.
constexpr int64_t kAligned = 64;

/// Returns the cost of odd numbers of features: for each that is no multiple of `kAligned`, the time for an
/// element over that of the better of the nearest measured multiples on both sides, with everything else
/// equal.
std::string cliffs(const std::vector<Heat>&);

/// Returns the kernels and peers that could not run, each reason once.
std::string notRun(const std::vector<Heat>&);

/// All samples, and the medians and ratios of the tables.
nlohmann::json toJson(const std::vector<Heat>&, const Machine&, const std::vector<std::string>& peers);

}  // namespace normc::bench
