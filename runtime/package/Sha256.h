// SHA-256 by OpenSSL's libcrypto, linked statically and not exported.
#pragma once

#include <cstddef>
#include <string>

namespace normc::runtime {

/// 64 hexadecimal digits.
std::string sha256(const void* data, size_t bytes);

}  // namespace normc::runtime
