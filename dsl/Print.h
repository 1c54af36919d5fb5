// The canonical text of a spec: what `normc fmt` writes and packages carry.
//
// Flags stand in one fixed order, what is at its default is left out, and
// reading the text gives back an equal spec.
#pragma once

#include <string>

#include "dsl/Spec.h"

namespace normc {

/// `norm NAME { ... }` with a newline at its end. For a legal spec.
std::string print(const Spec&);

/// The shortest decimal that reads back as `value`: 0.9, 4000, 1e-5.
std::string numberText(double value);

}  // namespace normc
