// Hints for words (ForeignWords.h) and forms of other frameworks and notations: what to write in this
// language instead.
//
// A word of another framework may mean something else than the nearest word of this language: 'momentum' is
// not 'moment', and its number is not that of 'decay'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/Lexer.h"

namespace normc {

/// Returns didYouMean (Nearest.h), but first translates a common word of other frameworks, beside those of
/// `known`.
std::string hintFor(std::string_view word, const std::vector<std::string>& known,
                    const std::string& otherwise);

/// Returns a hint for a value without a name if `options` have names; empty if none is likely.
std::string nameHint(const Token& value, const std::vector<std::string>& options);

/// Returns the hint for an option that stands behind `value` without parentheses: `int8 per token`,
/// `features groups = 4`.
std::string optionHint(std::string_view value, std::string_view option, std::string_view setting);

/// Returns a hint for `strange`, which is no token, between `before` and `after`; may be empty.
std::string formHint(std::string_view before, std::string_view strange, std::string_view after);

/// The hint for a number that contains a comma.
inline constexpr const char* kNoCommas = "a number has no comma: write 4000, or 0.9";

}  // namespace normc
