// Shared memory of devices, by their compute capability.
#pragma once

#include <cstdint>

namespace normc::emulator {

/// Returns the bytes of a multiprocessor: 8.0 and 9.0 upwards have the large memory, 7.5 has 64 KiB for
/// blocks, and others 100 KiB.
constexpr uint32_t sharedOfMultiprocessor(int major, int minor) {
  const int number = 10 * major + minor;
  if (major >= 9 && major < 12) return 228 << 10;
  if (number == 80 || number == 87) return 164 << 10;
  return (number >= 80 ? 100 : 65) << 10;
}

/// What the system takes for each block.
inline constexpr uint32_t kSystemShared = 1 << 10;

/// Returns the most bytes that a block has, static and dynamic.
constexpr uint32_t sharedOfBlock(int major, int minor) {
  return sharedOfMultiprocessor(major, minor) - kSystemShared;
}

}  // namespace normc::emulator
