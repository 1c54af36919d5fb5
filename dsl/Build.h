// From the tree of a norm to its Spec: what each clause sets.
#pragma once

#include <string_view>
#include <vector>

#include "dsl/Check.h"
#include "dsl/Spec.h"
#include "dsl/Syntax.h"

namespace normc {

/// Applies the clauses of `norm` to `spec`, which holds the base or the defaults.
/// A clause sets all of its fields: what it does not say gets its default, not
/// what the base had. Notes in `places` where each flag was written.
void applyClauses(const NormSyntax& norm, const SourceText&, Spec& spec, Places& places,
                  std::vector<Diagnostic>& errors);

/// Whether a clause begins with that word.
bool isClause(std::string_view keyword);

}  // namespace normc
