// The report of an emulated launch: its counts, or its first fault.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace normc::emulator {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;

  uint64_t count() const { return uint64_t(x) * y * z; }
  /// Returns the coordinates of the element with this number; x runs fastest.
  Dim3 at(uint64_t number) const {
    return {uint32_t(number % x), uint32_t(number / x % y), uint32_t(number / x / y)};
  }
  bool operator==(const Dim3&) const = default;
  std::string text() const;  ///< e.g. `(3, 0, 0)`
};

enum class Fault {
  OutOfBounds,
  Misaligned,
  ReadOnly,       ///< a write to memory that the kernel may only read
  Uninitialised,  ///< a read of bytes that were never written
  Race,           ///< two accesses, one of them a write, that nothing orders
  Divergence,     ///< a barrier or a warp instruction that some threads do not reach
  Deadlock,       ///< no thread can go on
  Runaway,        ///< more steps than Options::maxSteps
  Misuse,         ///< of an instruction: a trap, a broken assumption, a wrong use of an mbarrier
};
/// Returns the beginning of a report, e.g. `out of bounds`.
const char* nameOf(Fault);

/// The fault that ended a launch. The memory that the launch has written until then is not valid.
struct Finding {
  Fault fault;
  std::string what;  ///< e.g. `reads 16 bytes at x + 4096; x has 4096 bytes`
  std::string kernel;
  Dim3 block{0, 0, 0}, thread{0, 0, 0};
  std::string where;    ///< the instruction, as in the PTX
  std::string earlier;  ///< the other access of a race, or the place where other threads wait

  std::string text() const;
};

/// The bytes that a launch moved between one region and its threads. The width of an access is that of NVPTX:
/// its alignment, at most 16 bytes (32 from sm_100 on, in global memory).
struct Traffic {
  static constexpr int kWidths = 6;  ///< 1, 2, 4, 8, 16, 32 bytes

  std::string region;
  uint64_t bytesLoaded = 0, bytesStored = 0;
  std::array<uint64_t, kWidths> loads{}, stores{};  ///< per thread, by log2 of the width
  uint64_t bytesCopied = 0;  ///< the part of bytesLoaded that was copied by cp.async and bulk copies
};

struct Report {
  std::optional<Finding> finding;
  std::vector<Traffic> traffic;  ///< of each accessed region, in the order of addresses
  uint64_t barriers = 0;         ///< passed block barriers, summed over blocks
  uint64_t clusterBarriers = 0;  ///< summed over clusters
  uint64_t shuffles = 0;         ///< shuffles of a warp, or of a part of one
  uint64_t atomics = 0;          ///< read-modify-writes of global memory, of all threads
  uint64_t switches = 0;         ///< number of waits of a thread for others
  uint64_t steps = 0;            ///< memory accesses and waits of all threads

  bool ok() const { return !finding; }
  std::string text() const { return finding ? finding->text() : "ok"; }
  /// Returns the traffic of a region; zero if the region was not accessed.
  Traffic of(const std::string& region) const;
};

}  // namespace normc::emulator
