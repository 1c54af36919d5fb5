// Results as JSON lines: one object a line. tune::Journal adds a line as soon as it is known, so a run that
// is cut short has lost nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace normc::gpu {

using Json = nlohmann::json;

/// Returns the objects of a file; none where there is no file. A line that was cut off is left out.
std::vector<Json> readRecords(const std::string& file);

}  // namespace normc::gpu
