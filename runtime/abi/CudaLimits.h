// Limits of CUDA devices: of any launch, and of the memory of a multiprocessor (CUDA C++ Programming Guide,
// Technical Specifications per Compute Capability).
#pragma once

#include <cstdint>

namespace normc::limits {

/// Threads of a block.
inline constexpr int64_t kBlockThreads = 1024;
/// Blocks of a cluster: on some devices, and on every device that has clusters.
inline constexpr int64_t kCluster = 16, kPortableCluster = 8;
/// Blocks of a grid along x, and along y and z.
inline constexpr int64_t kGridX = 0x7fffffff, kGridY = 65535;
/// Chunks of a phase that a package may name; where a chunk has a cluster, chunks times its blocks.
inline constexpr int64_t kChunks = 1 << 30;
/// Bytes of shared memory that the system takes for each block.
inline constexpr int64_t kSystemShared = 1 << 10;

/// Returns the bytes of shared memory of a multiprocessor of compute capability number / 10: 80 and 90
/// upwards have the large memory, 75 has 64 KiB for blocks, and others 100 KiB.
constexpr int64_t sharedOfMultiprocessor(int64_t number) {
  if (number >= 90 && number < 120) return 228 << 10;
  if (number == 80 || number == 87) return 164 << 10;
  return int64_t(number >= 80 ? 100 : 65) << 10;
}

/// Returns the most bytes that a block has, static and dynamic.
constexpr int64_t sharedOfBlock(int64_t number) { return sharedOfMultiprocessor(number) - kSystemShared; }

}  // namespace normc::limits
