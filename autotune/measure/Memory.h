// Memory that kernels are timed on, of the host or of a device, and the numbers in it.
#pragma once

#include <cstdint>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "runtime/abi/Types.h"

namespace normc::measure {

/// Page-aligned memory, released by the destructor.
class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t bytes);
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  ~Memory();
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  friend Memory scatteredZeros(int64_t bytes, uint64_t seed);
  /// Memory without pages, which the first use of each gives.
  struct Unused {};
  Memory(int64_t bytes, Unused);

  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// Returns zeros on pages in random physical order, as below.
Memory scatteredZeros(int64_t bytes, uint64_t seed);

/// Returns a copy on pages in random physical order by `seed`: neighbouring pages are not neighbours in
/// physical memory, as in a process that has run for long. The order affects TLB misses and cache conflicts.
Memory scattered(const Memory&, uint64_t seed);

/// Writes `count` numbers that look normal; none of them is subnormal. They repeat after about a million, at
/// a period that is no multiple of a row.
void fill(Memory&, DType type, int64_t count, uint64_t seed, float mean, float sigma);

/// Writes `values`, rounded, as elements of `type`.
void store(const std::vector<float>& values, DType type, void* to);

/// Returns device memory filled with numbers of the type, about N(0,1). The host makes a part, which is
/// repeated, because making a large tensor is slow; the period is not a multiple of a row.
gate::CudaMemory filled(const gate::CudaDevice&, DType, int64_t bytes, uint64_t seed);

/// Memory for kernels, on the host or on a device.
class Held {
 public:
  Held() = default;
  explicit Held(Memory host) : host_(std::move(host)) {}
  explicit Held(gate::CudaMemory device) : device_(std::move(device)) {}
  /// Returns memory with undefined content; on the host if `device` is null.
  static Held ofBytes(int64_t bytes, const gate::CudaDevice* device);
  /// Returns `host` itself, or a copy of it on the device.
  static Held of(Memory host, const gate::CudaDevice* device);

  void* data() const { return device_.device() ? device_.data() : host_.data(); }
  gate::DeviceAddress address() const { return device_.address(); }  ///< valid for device memory
  int64_t bytes() const { return device_.device() ? device_.bytes() : host_.bytes(); }

 private:
  Memory host_;
  gate::CudaMemory device_;
};

}  // namespace normc::measure
