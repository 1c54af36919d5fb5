// What a host would ask a package for.
#pragma once

#include <string>

#include "dsl/Fields.h"
#include "dsl/Problem.h"

namespace normc::gate {

/// The problem's text with the sizes of a trial: kernels that are limited to few rows serve no other request.
std::string requestOf(const Problem&, const Extents&);

}  // namespace normc::gate
