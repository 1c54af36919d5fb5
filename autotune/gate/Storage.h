// Raw memory between guards, read and written as numbers of any storage type.
//
// The memory is on the host or on a CUDA device. For a device, numbers are read and written in a copy on the
// host; upload() and download() copy all of it, with the guards, to the device and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/gate/Pages.h"
#include "dsl/Problem.h"

namespace normc::gate {

class Storage {
 public:
  static constexpr int64_t kGuard = 256;  ///< bytes before the memory and after it that are checked

  Storage() = default;
  /// `offset`: bytes from a 64-byte boundary to address(). Without a device the memory is on the host. With
  /// `guardPages` it ends as close to a page without access as that address allows.
  Storage(int64_t bytes, int64_t offset, const CudaDevice* device = nullptr, bool guardPages = false);

  /// Returns the address for a kernel: data(), or the same position in the device's copy.
  void* address();
  /// Copy to or from the device; they do nothing on the host. The copies are complete when the device's
  /// stream is.
  void upload() const;
  void download();

  void* data() { return begin() + begin_; }
  const void* data() const { return begin() + begin_; }
  int64_t bytes() const { return bytes_; }
  std::span<const uint8_t> content() const { return {begin() + begin_, size_t(bytes_)}; }

  /// Fills data with a pattern that is a NaN in every float type.
  void poison();
  bool guardsIntact() const;
  /// True if all gaps between the elements of a strided tensor are still poisoned.
  bool gapsIntact(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                  int64_t elementBytes) const;

  /// Reads or writes `values.size()` elements, from `index` on, `stride` elements apart.
  void get(DType type, int64_t index, int64_t stride, std::span<double> values) const;
  void put(DType type, int64_t index, int64_t stride, std::span<const double> values);
  double get(DType type, int64_t index) const;
  void put(DType type, int64_t index, double value) { put(type, index, 1, {&value, 1}); }
  /// Returns element `index` of a field that begins `offset` bytes after data().
  double getField(DType type, size_t offset, size_t index) const;
  void putField(DType type, size_t offset, size_t index, double value);

 private:
  uint8_t* begin() const { return pages_.data() ? pages_.data() : const_cast<uint8_t*>(memory_.data()); }
  int64_t size() const { return pages_.data() ? pages_.bytes() : int64_t(memory_.size()); }

  std::vector<uint8_t> memory_;
  Pages pages_;  ///< used instead of memory_ if guard pages were requested
  int64_t begin_ = 0, bytes_ = 0;
  CudaMemory twin_;
};

}  // namespace normc::gate
