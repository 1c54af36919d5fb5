// The first bytes of a package, specified in docs/package-format.md: the writer fills them, the runtime
// checks them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace normc::package {

inline constexpr char kMagic[8] = "NORMCPK";
inline constexpr uint32_t kFormat = 1;

/// The header, in little endian. The manifest follows, then the blobs.
struct Header {
  char magic[8] = {};
  uint32_t version = kFormat;
  uint32_t zero = 0;
  uint64_t manifestBytes = 0;
  std::array<unsigned char, 32> manifestHash = {};  ///< SHA-256
  uint64_t fileBytes = 0;
};
static_assert(sizeof(Header) == 64 && offsetof(Header, fileBytes) == 56);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "packages are little endian, and so far is every processor they hold kernels for"
#endif

}  // namespace normc::package
