// Raw memory between guards, read and written as numbers of any storage type.
//
// Of the host, or of a CUDA device: then numbers are read and written in an image
// on the host, and upload() and download() move all of it, the guards too, to its
// twin on the device and back.
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
  Storage() = default;
  /// `offset`: bytes by which address() is off a 64-byte line. Without a device: of the host, and with
  /// `guardPages` as near to a page that nobody may touch as that address allows.
  Storage(int64_t bytes, int64_t offset, const CudaDevice* device = nullptr, bool guardPages = false);

  /// What a kernel is given: data(), or the same place of the twin.
  void* address();
  /// Both do nothing on the host; the copies have happened when the device's stream is done.
  void upload() const;
  void download();

  void* data() { return begin() + begin_; }
  const void* data() const { return begin() + begin_; }
  int64_t bytes() const { return bytes_; }

  /// Fills data with a pattern that is a NaN in every float type.
  void poison();
  bool guardsIntact() const;
  /// Whether all that lies between the elements of a strided tensor is still poisoned.
  bool gapsIntact(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                  int64_t elementBytes) const;

  /// As many elements as `values`, each `stride` behind the one before.
  void get(DType type, int64_t index, int64_t stride, std::span<double> values) const;
  void put(DType type, int64_t index, int64_t stride, std::span<const double> values);
  double get(DType type, int64_t index) const;
  void put(DType type, int64_t index, double value) { put(type, index, 1, {&value, 1}); }
  /// The element `index` of a field that begins `offset` bytes behind data().
  double getField(DType type, size_t offset, size_t index) const;
  void putField(DType type, size_t offset, size_t index, double value);

 private:
  uint8_t* begin() const { return pages_.data() ? pages_.data() : const_cast<uint8_t*>(memory_.data()); }
  int64_t size() const { return pages_.data() ? pages_.bytes() : int64_t(memory_.size()); }

  std::vector<uint8_t> memory_;
  Pages pages_;  ///< instead of it
  int64_t begin_ = 0, bytes_ = 0;
  CudaMemory twin_;
};

}  // namespace normc::gate
