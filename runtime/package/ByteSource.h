// The source of a package's bytes: an open file, or a copy in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/normc.h"

namespace normc::runtime {

class ByteSource {
 public:
  static normc_status open(const char* path, std::unique_ptr<ByteSource>& source);
  static std::unique_ptr<ByteSource> copy(const void* data, size_t bytes);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;

  uint64_t bytes() const { return bytes_; }
  /// Appends [offset, offset + count) to `to`, or fails. The range must be within bytes().
  normc_status read(uint64_t offset, uint64_t count, std::vector<char>& to) const;

 private:
  ByteSource() = default;

  int file_ = -1;
  std::string path_;  ///< of the file
  std::vector<char> memory_;
  uint64_t bytes_ = 0;
};

}  // namespace normc::runtime
