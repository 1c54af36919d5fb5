// The global memory of an emulated device: what a kernel may touch, by address.
//
// Addresses are those of the host, so a region is simply registered, or allocated
// here between red zones. Two regions that the caller registers side by side have
// no red zone: what runs over from one into the other is not seen.
//
// One launch at a time may use a Memory; different ones are independent.
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

  /// Registers memory of the caller's. An error if it overlaps what is registered.
  llvm::Error add(void* base, size_t bytes, std::string name, Access access = Access::ReadWrite,
                  Content content = Content::Initialised);

  /// New memory, filled with a pattern that is a NaN in every float type. It begins at a
  /// multiple of 256, as a device gives it, or of `alignment` and of no larger power of
  /// two; pages around it are off limits.
  void* allocate(size_t bytes, std::string name, Access access = Access::ReadWrite,
                 Content content = Content::Uninitialised, size_t alignment = 256);

  /// Makes bytes of a region off limits: the gaps between the rows of a padded tensor.
  llvm::Error forbid(const void* base, size_t bytes);
  /// Says that the host has written these bytes (all within one region).
  llvm::Error markInitialised(const void* base, size_t bytes);
  /// Changes what launches may do with the region that begins at `base`.
  llvm::Error setAccess(const void* base, Access access);
  /// Forgets the region that begins at `base`, and frees it if it was allocated here.
  llvm::Error remove(const void* base);

  /// e.g. `x + 16`, or the address where no region holds it.
  std::string describe(const void* address) const;

  struct State;
  State& state() { return *state_; }  ///< for the emulator

 private:
  std::unique_ptr<State> state_;
};

}  // namespace normc::emulator
