// The global memory of an emulated device: the memory that a kernel may access, by address.
//
// Addresses are host addresses, so a region is either registered, or allocated here between red zones.
// Adjacent regions that the caller registers have no red zone: an overrun from one into the other is not
// detected.
//
// One launch at a time may use a Memory; different objects are independent.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "llvm/Support/Error.h"

namespace normc::emulator {

enum class Access { ReadWrite, ReadOnly };
enum class Content { Initialised, Uninitialised };

class Memory {
 public:
  Memory();
  ~Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;

  /// Registers memory that the caller owns. An error if it overlaps a registered region.
  llvm::Error add(void* base, size_t bytes, std::string name, Access access = Access::ReadWrite,
                  Content content = Content::Initialised);

  /// Allocates memory, filled with a pattern that is a NaN in every float type. It begins at a multiple of
  /// 256, as on a device, or of `alignment` and of no larger power of two; the pages around it are
  /// inaccessible.
  void* allocate(size_t bytes, std::string name, Access access = Access::ReadWrite,
                 Content content = Content::Uninitialised, size_t alignment = 256);

  /// Makes bytes of a region inaccessible: the gaps between the rows of a padded tensor.
  llvm::Error forbid(const void* base, size_t bytes);
  /// Marks bytes, all within one region, as written by the host.
  llvm::Error markInitialised(const void* base, size_t bytes);
  /// Removes the region that begins at `base`, and frees it if it was allocated here.
  llvm::Error remove(const void* base);

  /// Returns e.g. `x + 16`, or the address if no region holds it.
  std::string describe(const void* address) const;

  struct State;
  State& state() { return *state_; }  ///< for the emulator

 private:
  std::unique_ptr<State> state_;
};

}  // namespace normc::emulator
