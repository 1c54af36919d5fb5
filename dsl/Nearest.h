// "Did you mean ...?": the known word that is nearest to a mistyped one.
//
// Shared by the language, by problem texts and by the command line, so that all
// errors suggest alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normc {

/// How many single-character insertions, deletions, replacements and swaps of
/// neighbours turn `a` into `b`; upper and lower case count as equal.
int editDistance(std::string_view a, std::string_view b);

/// The nearest of `known`, the first of equals; none where even that is too far
/// (more than a third of the letters) to be what was meant.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// "did you mean 'layer_norm'?", else `otherwise`.
std::string didYouMean(std::string_view word, const std::vector<std::string>& known,
                       const std::string& otherwise);

/// "a", "a or b", "a, b or c".
std::string oneOf(const std::vector<std::string>& words);

/// `'word'`, for messages; cut where it is very long, unprintable bytes as \xNN.
std::string inQuotes(std::string_view word);

}  // namespace normc
