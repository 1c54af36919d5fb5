// What writers from other frameworks and notations write, and the form that stands here instead.
//
// A word of another framework may mean something else than the nearest one of this language:
// 'momentum' is not 'moment', and its number is not that of 'decay'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/Lexer.h"

namespace normc {

/// As didYouMean (Nearest.h), but a usual word of other frameworks is translated first, where what it
/// stands for is one of `known`.
std::string hintFor(std::string_view word, const std::vector<std::string>& known, const std::string& otherwise);

/// What to write for a value that stands without a name where `options` have names; empty where that is not known.
std::string nameHint(const Token& value, const std::vector<std::string>& options);

/// What to write where `strange`, which is no token, stands between `before` and `after`; may be empty.
std::string formHint(std::string_view before, std::string_view strange, std::string_view after);

/// The hint about a number that a comma divides.
inline constexpr const char* kNoCommas = "a number has no comma: write 4000, or 0.9";

}  // namespace normc
