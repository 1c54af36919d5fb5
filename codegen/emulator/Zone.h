// A part of the memory that a kernel may access, a region of global memory or one variable in a block's
// shared memory, with the records of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/emulator/Clock.h"
#include "codegen/emulator/Memory.h"
#include "codegen/emulator/Report.h"

namespace normc::emulator {

/// The last write and the last read of some bytes. Threads are numbered over all launches of a Memory, so
/// records of an earlier launch are known to be old.
struct Cell {
  static constexpr uint32_t kCount = (1u << 27) - 1;  ///< the bits of the count
  static constexpr uint32_t kOneWarp = 1u << 27;      ///< those several threads are of one warp
  static constexpr uint32_t kCluster = 1u << 28;      ///< threads of several blocks of one cluster have read
  static constexpr uint32_t kAtomic = 1u << 29;       ///< it was a strong access
  static constexpr uint32_t kSeveral = 1u << 30;      ///< several threads of that block have read
  static constexpr uint32_t kManyBlocks = 1u << 31;   ///< threads of blocks of several clusters have read

  uint32_t writer, written, writeSite;  ///< thread, its count then, the instruction
  uint32_t reader, read, readSite;
};

/// One cell per granule, the largest power of two at which all accesses have begun and ended. It is 16 bytes
/// at first and shrinks if necessary.
class Cells {
 public:
  Cell* at(uint64_t offset, uint64_t bytes, uint64_t zoneBytes) {
    uint64_t edges = offset | bytes;
    if (!cells_ || (edges & (granule() - 1))) refine(edges, zoneBytes);
    return cells_.get() + (offset >> shift_);
  }
  uint64_t granule() const { return uint64_t(1) << shift_; }
  int shift() const { return shift_; }
  /// Returns the key of the granule of an offset, for the present granule size or one 2^by times as large.
  uint64_t keyOf(uint64_t offset, int by = 0) const {
    return (offset >> (shift_ + by) << 3) | uint64_t(shift_ + by);
  }
  int refinements() const { return kShift - shift_; }
  bool empty() const { return !cells_; }
  void clear() { cells_.reset(); }
  template <typename F>
  void each(uint64_t zoneBytes, F f) const {
    for (uint64_t i = 0; cells_ && i < zoneBytes >> shift_; ++i) f(cells_[i]);
  }

 private:
  void refine(uint64_t edges, uint64_t zoneBytes);

  struct Free {
    void operator()(Cell*) const;
  };
  static constexpr int kShift = 4;
  std::unique_ptr<Cell[], Free> cells_;
  int shift_ = kShift;
};

struct Block;

struct Zone {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  std::string name;
  bool readOnly = false;
  Block* block = nullptr;            ///< the block of this shared memory; null: global memory
  std::vector<uint8_t> initialised;  ///< by byte; empty: all of them
  std::vector<uint8_t> forbidden;    ///< by byte; empty: none
  std::vector<std::byte> storage;    ///< of memory that was allocated here
  Cells cells;
  std::unordered_map<uint64_t, Clock> readers;  ///< of writable memory: the readers of cells with kManyBlocks
  Traffic traffic;
  bool touched = false;

  bool holds(const std::byte* p, uint64_t size) const {
    return p >= base && uint64_t(p - base) <= bytes && size <= bytes - uint64_t(p - base);
  }
};

struct Memory::State {
  std::vector<std::unique_ptr<Zone>> zones;  ///< by address
  uint32_t nextThread = 1;                   ///< number of the next launch's first thread

  /// Returns the zone with the largest start at or before the address; null if there is none.
  Zone* before(const std::byte*) const;
  Zone* find(const std::byte* p, uint64_t bytes) const;
};

}  // namespace normc::emulator
