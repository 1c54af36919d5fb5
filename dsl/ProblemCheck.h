// checkProblem for a text: the same rules, with the places they point at.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/Problem.h"

namespace normc {

/// P1, P4, P5: most features, and so most groups, of a problem. Every count of the bytes of a row, of a window of
/// statistics or of a block of rows stays far inside int64_t.
inline constexpr int64_t kMostFeatures = int64_t(1) << 40;

/// The errors of `problem` by the rules P1 to P8 of dsl/SPEC.md. `locate` fills in where a part
/// stands: "[shape]", "[features]", "layout", "params" or the name of a binding; else the norm.
std::vector<Diagnostic> problemErrors(
    const Problem&, const std::function<void(const std::string& part, Diagnostic&)>& locate);

/// P4: an option, or a binding, that a problem of this spec does not have.
Diagnostic unknownOption(const Spec&, const std::string& name);

}  // namespace normc
