// Workspace for calls on a CPU, whose hosts have no memory to give.
#pragma once

#include <cstddef>
#include <memory>

namespace normc::hosts {

/// Memory of one thread, which grows to the most that a call needed.
class Scratch {
 public:
  /// Returns at least `bytes` bytes, which are valid until the next call on this thread.
  static void* of(size_t bytes) {
    thread_local Scratch own;
    if (bytes > own.bytes_) {
      own.memory_ = std::make_unique_for_overwrite<char[]>(bytes);
      own.bytes_ = bytes;
    }
    return own.memory_.get();
  }

 private:
  std::unique_ptr<char[]> memory_;
  size_t bytes_ = 0;
};

}  // namespace normc::hosts
