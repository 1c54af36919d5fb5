// Reads the text of a .norm file into legal specs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Result.h"
#include "dsl/Spec.h"

namespace normc {

using NormMap = std::map<std::string, std::shared_ptr<const Spec>, std::less<>>;

/// Rule C27: the most bytes of a text of norms. Code that reads a text from an unbounded source reads one
/// byte more at most.
inline constexpr size_t kLargestNormText = 256 * 1024;

/// Returns a text without the byte order mark that some editors write in UTF-8 files.
std::string_view withoutMark(std::string_view text);

/// Returns the norms of `text` in its order, each legal by dsl/SPEC.md, or every error of the text, ordered
/// by place. `file` is its name in messages. `from` finds norms of the text first, in any order, then those
/// of `known`.
Result<std::vector<std::shared_ptr<const Spec>>> parseNorms(std::string_view text, const std::string& file,
                                                            const NormMap& known);

}  // namespace normc
