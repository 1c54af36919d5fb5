// Where memory lies, and a block of it that one of our objects owns.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/normc.h"

namespace normc::runtime {

/// The device of a plan: its tensors, state and workspace lie there.
struct Place {
  DLDeviceType type = kDLCPU;
  int32_t id = 0;
  std::string name = "the CPU";   ///< in errors; "cuda:0"
  const void* context = nullptr;  ///< of the driver; memory of one means nothing in another

  bool onHost() const { return type == kDLCPU; }
  bool sameDevice(const Place& other) const { return type == other.type && id == other.id; }
};

/// A block of memory there, aligned to 64 bytes. Its own copies have happened when they return; the caller
/// orders them with whatever else uses the memory.
class MemoryBlock {
 public:
  virtual ~MemoryBlock() = default;
  MemoryBlock(const MemoryBlock&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Between the block, from `offset` on, and memory of the host.
  virtual normc_status read(size_t offset, void* to, size_t bytes) const = 0;
  virtual normc_status write(size_t offset, const void* from, size_t bytes) = 0;

 protected:
  MemoryBlock() = default;

  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace normc::runtime
