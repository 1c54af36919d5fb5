// checkProblem for a text: the same rules, with the places of the errors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/Problem.h"

namespace normc {

/// Rules P1, P4, P5: the most features, and so the most groups, of a problem. The bytes of a row, of a window
/// of statistics and of a block of rows are far below the largest int64_t.
inline constexpr int64_t kMostFeatures = int64_t(1) << 40;

/// Returns the errors of `problem` by the rules P of dsl/SPEC.md. `locate` fills in the place of a part:
/// "[entry]", "[shape]", "[features]", an option or a binding by its name; for any other part the norm.
std::vector<Diagnostic> problemErrors(
    const Problem&, const std::function<void(const std::string& part, Diagnostic&)>& locate);

}  // namespace normc
