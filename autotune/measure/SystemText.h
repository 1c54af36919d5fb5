// Files of the system that describe the machine.
#pragma once

#include <string>

namespace normc::measure {

/// Returns the content of a file of the system; empty if this system does not have it, or does not show it.
/// Throws std::system_error if reading fails for a reason that may pass, e.g. too many open files: records
/// are those of the machine that such files describe, so nothing may be assumed instead.
std::string systemText(const std::string& path);

}  // namespace normc::measure
