// Memory between two pages without access: a kernel that reads or writes beyond it ends its process at that
// instruction.
#pragma once

#include <cstdint>
#include <utility>

namespace normc::gate {

class Pages {
 public:
  Pages() = default;
  /// Allocates whole pages with at least `bytes` bytes.
  explicit Pages(int64_t bytes);
  Pages(Pages&& other) noexcept { *this = std::move(other); }
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Pages();

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace normc::gate
