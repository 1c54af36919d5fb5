// Norms with something around them, as the benchmark races them: built-in ones, and those that exist here
// alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dsl/Result.h"
#include "dsl/Spec.h"

namespace normc::bench {

/// Returns the norms of a race of what surrounds a norm: one for each form.
const std::vector<std::string>& aroundNorms();

/// Returns a built-in norm, or one of the benchmark's own.
Result<std::shared_ptr<const Spec>> findBenchNorm(const std::string& name);

}  // namespace normc::bench
