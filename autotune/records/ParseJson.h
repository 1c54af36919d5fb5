// JSON that another program wrote: a line of records, a plan, an answer of a worker.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace normc::tune {

/// The deepest nesting of lists and objects that is read. What prints a value recurses as deep as it is
/// nested.
inline constexpr int kDeepest = 64;

/// Returns the value of a text; a discarded one if it is not JSON, holds a zero byte, behind which the parser
/// would read nothing, or is nested deeper than kDeepest.
nlohmann::json parseJson(std::string_view text);

}  // namespace normc::tune
