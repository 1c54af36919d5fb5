// The parser: from tokens to the syntax tree, by recursive descent after the grammar of dsl/SPEC.md.
//
// An error removes its clause or its norm, never the rest of the file: parsing continues at the next line, so
// that one run reports every error.
#pragma once

#include <vector>

#include "dsl/Errors.h"
#include "dsl/Syntax.h"

namespace normc {

/// Returns the norms of the file, without the clauses that have a syntax error.
std::vector<NormSyntax> parseSyntax(const SourceText&, Errors& errors);

}  // namespace normc
