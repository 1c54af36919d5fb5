// The units of memory for layouts and schedules. Standard C++ only; every folder may include it.
#pragma once

#include <cstdint>

namespace normc {

/// Bytes of a cache line of a CPU, the unit of its memory transfers.
inline constexpr int64_t kCacheLine = 64;
/// Bytes of a page. Addresses that differ by a multiple of it use the same set of an L1 cache, and a load
/// conflicts with an earlier store at such a distance.
inline constexpr int64_t kPage = 4096;
/// The distance within a page, in bytes, that keeps what is stored here and what is loaded there apart: a
/// load waits for an earlier store with the same offset in a page, and stores must not be just ahead of a
/// stream of loads.
inline constexpr int64_t kApart = kPage / 4;
/// The bytes of a task's first rows that stay in cache until they are read again.
inline constexpr int64_t kHeadBytes = 512 << 10;

}  // namespace normc
