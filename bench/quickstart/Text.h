// Activations made from real text: one row for each token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace normc::quickstart {

/// Words in lower case, and punctuation marks, in their order.
std::vector<std::string> tokensOf(const std::string& text);

/// rows x features. A token is the sum of its character n-grams (3 to 5, with marks at its ends), as in
/// fastText; the vector of an n-gram is given by its hash. Half of the token before is added, as a first
/// layer of context would. So frequent words repeat, and related words are near each other.
std::vector<float> activationsOf(const std::vector<std::string>& tokens, int64_t features);

}  // namespace normc::quickstart
