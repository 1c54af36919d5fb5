#include "autotune/tune/FlagValues.h"

#include <charconv>

namespace normc::tune {

std::optional<double> secondsIn(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, size_t(end - rest));
  const double factor = unit.empty() || unit == "s"    ? 1
                        : unit == "ms"                 ? 1e-3
                        : unit == "m" || unit == "min" ? 60
                        : unit == "h"                  ? 3600
                                                       : 0;
  if (error != std::errc() || factor == 0 || !(value > 0)) return std::nullopt;
  const double seconds = value * factor;
  return seconds <= 10000 * 3600.0 ? std::optional(seconds) : std::nullopt;
}

std::optional<int32_t> cudaDeviceIn(std::string_view text) {
  constexpr std::string_view kCuda = "cuda:";
  int32_t index = 0;
  if (!text.starts_with(kCuda)) return std::nullopt;
  const char *const begin = text.data() + kCuda.size(), *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, index);
  if (begin == end || *begin == '-' || error != std::errc() || rest != end) return std::nullopt;
  return index;
}

}  // namespace normc::tune
