// The problem of a task, from the two texts that a host and its worker exchange.
#pragma once

#include <string>

#include "dsl/Problem.h"

namespace normc::tune {

/// Returns the problem. `spec`: the text of its norm, which counts before a built-in norm of that name.
Result<Problem> problemOfTask(const std::string& spec, const std::string& problem);

}  // namespace normc::tune
