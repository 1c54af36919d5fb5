// The comments of a .norm file, carried over to its canonical text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Spec.h"

namespace normc {

/// Returns the canonical text of a file's norms with the comments of `source`, a legal text of the same norms
/// in the same order. A comment on a line of its own stands in front of what it stood in front of: a norm, a
/// clause, the end of a norm or of the file. One behind a clause stands behind it, and further ones inside it
/// in front of it. Where the canonical text does not have the clause, a comment goes on to the next one that
/// it has. To add the comments of the result to itself changes nothing.
std::string withComments(std::string_view source, std::string_view canonical);

/// The same for norms of which `source` is the text. A clause that has a comment is written even if it says
/// the default, so no comment goes on to another clause.
std::string textWithComments(std::string_view source, const std::vector<std::shared_ptr<const Spec>>& norms);

}  // namespace normc
