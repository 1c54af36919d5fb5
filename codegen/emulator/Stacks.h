// Stacks of fibers: one piece of memory for all resident ones. Launches of a program reuse it, since touching
// new pages costs more than a small launch.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "llvm/Support/Error.h"

namespace normc::emulator {

/// Memory from the system, not touched yet.
class Stacks {
 public:
  static llvm::Expected<std::unique_ptr<Stacks>> create(size_t bytes);
  ~Stacks();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Stacks(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  size_t bytes_;
};

/// Keeps one piece of memory between launches. Thread-safe.
class StackPool {
 public:
  llvm::Expected<std::unique_ptr<Stacks>> take(size_t bytes);
  void giveBack(std::unique_ptr<Stacks>);

 private:
  std::mutex mutex_;
  std::unique_ptr<Stacks> kept_;
};

}  // namespace normc::emulator
