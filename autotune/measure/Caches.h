// The sizes of a processor's caches, as one of its cores sees them.
//
// The kernel describes the cache that a core reaches. The C library's figure for the third level can be
// the sum over a whole socket, of which a core reaches one part.
#pragma once

#include <cstdint>
#include <string>

namespace normc::measure {

/// In bytes; 0: unknown.
struct Caches {
  int64_t first = 0;  ///< for data
  int64_t second = 0;
  int64_t last = 0;  ///< the largest from the third level on
};

/// Returns what the kernel describes in `folder`, in which each cache is a folder `index0`, `index1`, ... A
/// size that is missing, or that makes no sense beside those of the lower levels, is taken from `otherwise`.
/// The description is used as it stands, even if it names processors that a virtual machine does not have.
Caches cachesIn(const std::string& folder, const Caches& otherwise = {});

/// Returns the caches of this machine: the kernel's description, and the C library's figures where it has
/// none.
Caches thisCaches();

/// Where Linux describes the caches of the first processor.
inline constexpr const char* kCacheFolder = "/sys/devices/system/cpu/cpu0/cache";

}  // namespace normc::measure
