// Builds the Spec of a norm from its syntax tree: which fields each clause sets.
#pragma once

#include <string_view>
#include <vector>

#include "dsl/Check.h"
#include "dsl/Errors.h"
#include "dsl/Spec.h"
#include "dsl/Syntax.h"

namespace normc {

/// Applies the clauses of `norm` to `spec`, which holds the base or the defaults. A clause sets all of its
/// fields: a field that it does not mention gets its default, not the value of the base. Records in `places`
/// where each flag was written.
void applyClauses(const NormSyntax& norm, const SourceText&, Spec& spec, Places& places, Errors& errors);

/// True if a clause begins with that word.
bool isClause(std::string_view keyword);

/// The hint for a clause behind another one.
inline constexpr const char* kOneLineEach = "each clause stands on a line of its own";

}  // namespace normc
