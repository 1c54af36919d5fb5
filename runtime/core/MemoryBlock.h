// The device of memory, and a block of memory that an object of the runtime owns.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/normc.h"

namespace normc::runtime {

/// The device of a plan, on which its tensors, state and workspace are.
struct Place {
  DLDeviceType type = kDLCPU;
  int32_t id = 0;
  std::string name = "the CPU";   ///< its name in errors, e.g. "cuda:0"
  const void* context = nullptr;  ///< the driver's context; memory of one is invalid in another

  bool onHost() const { return type == kDLCPU; }
  bool sameDevice(const Place& other) const { return type == other.type && id == other.id; }
};

/// A block of memory on a device, aligned to 64 bytes. Its copies are complete when they return; the caller
/// orders them with other uses of the memory.
class MemoryBlock {
 public:
  virtual ~MemoryBlock() = default;
  MemoryBlock(const MemoryBlock&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Copies between the block, from `offset` on, and memory of the host.
  virtual normc_status read(size_t offset, void* to, size_t bytes) const = 0;
  virtual normc_status write(size_t offset, const void* from, size_t bytes) = 0;

 protected:
  MemoryBlock() = default;

  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace normc::runtime
