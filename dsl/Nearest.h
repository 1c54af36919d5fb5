// Words of messages: "did you mean ...?", lists, counts, quotes.
//
// Used by the language, by problem texts, by the tuner and by the command line, so that all messages are made
// in the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normc {

/// Returns the number of single-character insertions, deletions, replacements and swaps of neighbours that
/// turn `a` into `b`; upper and lower case count as equal. Where it is above `most`, returns `most` + 1, as
/// soon as that is known.
int editDistance(std::string_view a, std::string_view b, int most = 1 << 30);

/// Returns the nearest of `known`, the first of equals; none if even that is too far (more than a third of
/// the letters, so any edit of a word of one or two).
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// Returns "did you mean 'layer_norm'?"; `otherwise` if no word is near.
std::string didYouMean(std::string_view word, const std::vector<std::string>& known,
                       const std::string& otherwise);

/// Returns "a", "a or b", "a, b or c".
std::string oneOf(const std::vector<std::string>& words);

/// Returns "1 row", "2 rows".
std::string counted(int64_t count, const std::string& noun);

/// Returns `'word'` for messages: very long words are cut, unprintable bytes become \xNN.
std::string inQuotes(std::string_view word);

}  // namespace normc
