// SHA-256 (FIPS 180-4) in plain C++: no library that the runtime would have to carry or to find.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace normc::runtime {

using Digest = std::array<unsigned char, 32>;
Digest digestOf(std::string_view bytes);

/// Returns 64 hexadecimal digits.
std::string hex(const Digest&);
inline std::string sha256(std::string_view bytes) { return hex(digestOf(bytes)); }

}  // namespace normc::runtime
