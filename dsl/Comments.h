// The comments of a .norm file, carried over to its canonical text.
#pragma once

#include <string>
#include <string_view>

namespace normc {

/// Returns the canonical text of a file's norms with the comments of `source`, a legal text of the same norms
/// in the same order. A comment on a line of its own stands in front of what it stood in front of: a norm, a
/// clause, the end of a norm or of the file. One behind a clause stands behind it. Where the canonical text
/// does not have the clause, a comment goes on to the next one that it has. To add the comments of the result
/// to itself changes nothing.
std::string withComments(std::string_view source, std::string_view canonical);

}  // namespace normc
