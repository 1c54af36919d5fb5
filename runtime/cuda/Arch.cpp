#include "runtime/cuda/Arch.h"

#include <charconv>

namespace normc::runtime {

std::optional<Arch> Arch::parse(std::string_view text) {
  if (!text.starts_with("sm_")) return std::nullopt;
  text.remove_prefix(3);
  Arch arch;
  if (text.ends_with('a') || text.ends_with('f')) {
    arch.suffix = text.back();
    text.remove_suffix(1);
  }
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // Capabilities have two digits, or three from 10.0 on; a sign or a leading zero is not one.
  const bool digits = error == std::errc() && end == text.data() + text.size();
  if (!digits || text.size() > 3 || number < 20 || number > 999 || text.front() == '0') return std::nullopt;
  arch.major = number / 10;
  arch.minor = number % 10;
  return arch;
}

std::string Arch::text() const {
  std::string result = "sm_" + std::to_string(number());
  if (suffix) result += suffix;
  return result;
}

bool Arch::cubinRunsOn(const Arch& device) const {
  if (suffix == 'a') return sameCapability(device);
  return major == device.major && minor <= device.minor;
}

bool Arch::ptxRunsOn(const Arch& device) const {
  return suffix ? cubinRunsOn(device) : number() <= device.number();
}

}  // namespace normc::runtime
