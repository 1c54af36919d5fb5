// Pictures of a report over the number of features, from its JSON alone: a report that is kept can be drawn
// again.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/plot/Gnuplot.h"

namespace normc::bench {

/// For every entry, type, place and number of threads that ran with several numbers of features: `speed`
/// (bytes of a call in a second, and of the faster copy), `copy` (share of that copy's speed) and `peers`
/// (time over the best peer's). Features that are not whole vectors of 16 are points beside the lines.
/// `report`: what toJson returns (Table.h), with or without samples.
std::vector<plot::Picture> pictures(const nlohmann::json& report);

/// Draws the pictures into a folder that is there. Returns their paths. Throws std::runtime_error without
/// gnuplot, or if a file cannot be written.
std::vector<std::string> writePictures(const std::vector<plot::Picture>&, const std::string& folder);

/// Draws the pictures of FOLDER/report.json into FOLDER. Returns their paths. Throws std::runtime_error, also
/// if the file is no report.
std::vector<std::string> drawAgain(const std::string& folder);

}  // namespace normc::bench
