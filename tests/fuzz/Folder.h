// A folder of this process that is removed at its end, for targets that read files.
#pragma once

#include <string>

namespace normc::fuzz {

/// Returns the path of the folder. It is made at the first call.
const std::string& folder();

/// Writes a file of the folder. Returns its path.
std::string writeFile(const std::string& name, std::string_view bytes);

}  // namespace normc::fuzz
