// The options of a problem, where they are not those of its norm.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/Problem.h"

namespace normc {

/// Returns the error P4 of an option `name=value`, or of one without a value, that a problem of this spec
/// does not have. `given` is the names of the problem's options.
Diagnostic unknownOption(const Spec&, std::string_view option, const std::vector<std::string>& given);

}  // namespace normc
