// The canonical text of a spec, as `normc fmt` writes it and packages hold it.
//
// Flags have one fixed order, defaults are left out, and reading the text gives an equal spec.
#pragma once

#include <set>
#include <string>

#include "dsl/Spec.h"

namespace normc {

/// Returns `norm NAME { ... }` with a newline at its end. The spec has to be legal. The clauses of `kept` are
/// written even if they say the default.
std::string print(const Spec&, const std::set<std::string>& kept = {});

/// Returns the shortest decimal that is read back as `value`: 0.9, 4000, 1e-5.
std::string numberText(double value);

}  // namespace normc
