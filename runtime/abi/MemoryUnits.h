// The units of memory for layouts and schedules. Standard C++ only; every folder may include it.
#pragma once

#include <cstdint>

namespace normc {

/// Bytes of a cache line of a CPU, the unit of its memory transfers.
inline constexpr int64_t kCacheLine = 64;
/// Bytes of a page. Addresses that differ by a multiple of it use the same set of an L1 cache, and a load
/// conflicts with an earlier store at such a distance.
inline constexpr int64_t kPage = 4096;

}  // namespace normc
