// checkProblem for a text: the same rules, with the places they point at.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dsl/Problem.h"

namespace normc {

/// The errors of `problem` by the rules P1 to P7 of dsl/SPEC.md. `locate` fills in where a part
/// stands: "[shape]", "[features]", "layout", "params" or the name of a binding; else the norm.
std::vector<Diagnostic> problemErrors(
    const Problem&, const std::function<void(const std::string& part, Diagnostic&)>& locate);

/// P4: an option, or a binding, that a problem of this spec does not have.
Diagnostic unknownOption(const Spec&, const std::string& name);

}  // namespace normc
