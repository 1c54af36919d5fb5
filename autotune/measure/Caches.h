// The sizes of a processor's caches, as one of its cores sees them.
//
// The Linux kernel describes the caches that a core reaches. The C library's size of the third level may be
// the sum over a whole socket, of which a core reaches one part.
#pragma once

#include <cstdint>
#include <string>

namespace normc::measure {

/// Sizes in bytes; 0: unknown.
struct Caches {
  int64_t first = 0;  ///< for data
  int64_t second = 0;
  int64_t last = 0;  ///< the largest from the third level on
};

/// Returns the caches that `folder` describes, in which each cache is a folder `index0`, `index1`, ... A size
/// that is missing, or that is impossible given the lower levels, is taken from `otherwise`. The description
/// is used even if it names processors that a virtual machine does not have.
Caches cachesIn(const std::string& folder, const Caches& otherwise = {});

/// Returns the caches of this machine: the Linux kernel's description, and the C library's sizes for what it
/// lacks.
Caches thisCaches();

/// The folder in which Linux describes the caches of the first processor.
inline constexpr const char* kCacheFolder = "/sys/devices/system/cpu/cpu0/cache";

}  // namespace normc::measure
