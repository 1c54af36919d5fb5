// Texts of a command line that programs with a compiler and those without read alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace normc::tune {

/// Of `20s`, `500ms`, `2m`, `1h` or a number of seconds; nothing for what is no time, or none that ends.
std::optional<double> secondsIn(std::string_view text);
inline constexpr const char* kTimes = "it must be a time, e.g. 20s, 500ms or 2m";

/// Of `cuda:N` its N.
std::optional<int32_t> cudaDeviceIn(std::string_view text);

}  // namespace normc::tune
