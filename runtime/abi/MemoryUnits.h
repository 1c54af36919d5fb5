// The units of memory that layouts and schedules count in: standard C++ only, for every folder.
#pragma once

#include <cstdint>

namespace normc {

/// Bytes of a cache line of a CPU: what a core reads or writes at once.
inline constexpr int64_t kCacheLine = 64;
/// Bytes after which addresses share a set of a first-level cache, and by which loads are compared with
/// earlier stores.
inline constexpr int64_t kPage = 4096;

}  // namespace normc
