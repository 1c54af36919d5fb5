// Lines of records as targets read them: what a fuzzer cannot guess stands as "?" and is filled in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normc::fuzz {

/// Returns the lines of a text, without their ends.
std::vector<std::string> linesOf(std::string_view text);

/// Returns a line with what its members of value "?" have to be: "device", this processor, and "id", the hash
/// of the rest. Other lines are returned as they are.
std::string filledIn(const std::string& line);

}  // namespace normc::fuzz
