// Parses command-line values for programs with and without a compiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace normc::tune {

/// Returns the seconds of `20s`, `500ms`, `2m`, `1h` or a number of seconds; nothing for any other text, for
/// 0, and for more than 10000 hours.
std::optional<double> secondsIn(std::string_view text);
inline constexpr const char* kTimes =
    "it must be a time above 0 and of 10000 hours at most, e.g. 20s, 500ms or 2m";

/// Returns N of `cuda:N`; nothing for any other text.
std::optional<int32_t> cudaDeviceIn(std::string_view text);

}  // namespace normc::tune
