// From tokens to the tree: recursive descent after the grammar of dsl/SPEC.md.
//
// An error costs its clause or its norm, never the rest of the file: parsing goes
// on at the next line, so that one run reports every error.
#pragma once

#include <vector>

#include "dsl/Syntax.h"

namespace normc {

/// Clauses with a syntax error are left out of the tree.
std::vector<NormSyntax> parseSyntax(const SourceText&, std::vector<Diagnostic>& errors);

}  // namespace normc
