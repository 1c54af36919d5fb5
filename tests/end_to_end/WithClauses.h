// Built-in norms with more clauses, and how tests judge their kernels.
#pragma once

#include "tests/end_to_end/Compiled.h"

namespace normc {

/// Returns the problem of a built-in norm with more clauses, which ';' separates; `rest` is its text from the
/// entry on. Nothing where the language refuses it.
std::optional<Problem> problemWith(const std::string& base, const std::string& clauses,
                                   const std::string& rest);

/// Judges a kernel on several segments with rows that no step divides, padding that is NaN, data that drift,
/// and one row, as it is and as for large calls. Fails the test where it is wrong.
void expectRight(const Problem&, const codegen::cpu::Schedule&, const codegen::cpu::Isa& = hostIsa());

}  // namespace normc
