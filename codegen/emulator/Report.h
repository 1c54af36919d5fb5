// The report of an emulated launch: what it did, or its first fault.
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
  Misuse,         ///< of an instruction: a trap, a broken assumption, an mbarrier used wrongly
};
/// As reports begin, e.g. `out of bounds`.
const char* nameOf(Fault);

/// The fault that ended a launch. What the launch has written by then is not to be used.
struct Finding {
  Fault fault;
  std::string what;  ///< e.g. `reads 16 bytes at x + 4096; x has 4096 bytes`
  std::string kernel;
  Dim3 block{0, 0, 0}, thread{0, 0, 0};
  std::string where;    ///< the instruction, as in the IR that was given
  std::string earlier;  ///< the other access of a race, or where other threads wait

  std::string text() const;
};

/// The bytes that a launch moved between one region and its threads. An access counts in the widths
/// that NVPTX gives it: its alignment, 16 bytes at most (32 from sm_100 on, in global memory).
struct Traffic {
  static constexpr int kWidths = 6;  ///< 1, 2, 4, 8, 16, 32 bytes

  std::string region;
  uint64_t bytesLoaded = 0, bytesStored = 0;
  std::array<uint64_t, kWidths> loads{}, stores{};  ///< per thread, by log2 of the width
  uint64_t bytesCopied = 0;  ///< the part of bytesLoaded that came by cp.async and bulk copies
};

struct Report {
  std::optional<Finding> finding;
  std::vector<Traffic> traffic;  ///< of each region that was touched, in the order of its address
  uint64_t barriers = 0;         ///< block barriers that were passed, summed over blocks
  uint64_t clusterBarriers = 0;  ///< summed over clusters
  uint64_t shuffles = 0;         ///< shuffles that a warp, or a part of one, did together
  uint64_t atomics = 0;          ///< read-modify-write on global memory, of each thread
  uint64_t switches = 0;         ///< times that a thread waited for others
  uint64_t steps = 0;            ///< memory accesses and waits of all threads

  bool ok() const { return !finding; }
  std::string text() const { return finding ? finding->text() : "ok"; }
  /// All zero for a region that was not touched.
  Traffic of(const std::string& region) const;
};

}  // namespace normc::emulator
