// A CUDA device for the gate and the benchmarks: memory, copies and a stream for the kernels that the runtime
// launches.
//
// The driver library is opened by name, so that a test can replace it. It is the library, and the context is
// the primary context, that the runtime uses; nothing else is shared with the runtime. No toolkit is needed.
//
// Failures are thrown as CudaError: "copying 64 bytes to cuda:0: CUDA_ERROR_...". An error of a kernel
// appears at the next synchronize() and at every later call.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/abi/CudaDriver.h"

namespace normc::cuda {

/// The functions of an open driver that a host program uses.
struct HostTable {
#define NORMC_CUDA_MEMBER(name, parameters) CUresult(*name) parameters = nullptr;
  NORMC_CUDA_DRIVER_API(NORMC_CUDA_MEMBER)
  NORMC_CUDA_HOST_API(NORMC_CUDA_MEMBER)
#undef NORMC_CUDA_MEMBER
};

}  // namespace normc::cuda

namespace normc::gate {

struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The open driver, with its functions as members. The library is not unloaded before the process ends.
struct CudaDriver : cuda::HostTable {
  static constexpr const char* kLibrary = "libcuda.so.1";

  /// Opens and initialises the driver.
  explicit CudaDriver(const std::string& library);
  /// Throws "DOING: CUDA_ERROR_NAME, what it means" unless the result is success.
  void check(cuda::CUresult result, const std::string& doing) const;
};

using DeviceAddress = cuda::CUdeviceptr;

/// A device for use by one thread at a time. Each thread creates its own object.
class CudaDevice {
 public:
  explicit CudaDevice(int index = 0, const std::string& library = CudaDriver::kLibrary);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;

  const CudaDriver& driver() const { return driver_; }
  cuda::CUdevice handle() const { return handle_; }
  int index() const { return index_; }
  std::string name() const { return "cuda:" + std::to_string(index_); }
  int attribute(cuda::CUdevice_attribute) const;
  /// The stream of this object; it is not ordered with the default stream.
  cuda::CUstream stream() const { return stream_; }

  /// Copies on the stream. `from` and `to` on the host must stay valid until synchronize().
  void upload(DeviceAddress to, const void* from, int64_t bytes) const;
  void download(void* to, DeviceAddress from, int64_t bytes) const;
  /// Repeats the first `have` bytes until `bytes` bytes are written.
  void repeat(DeviceAddress to, int64_t have, int64_t bytes) const;
  void fill(DeviceAddress to, uint8_t value, int64_t bytes) const;
  void synchronize() const;
  /// True if the context can still be used. It cannot after a kernel has failed.
  bool alive() const;

  /// Makes the device's primary context current on this thread during its lifetime.
  class Current {
   public:
    explicit Current(const CudaDevice&);
    ~Current();
    Current(const Current&) = delete;

   private:
    const CudaDriver& driver_;
  };

 private:
  CudaDriver driver_;
  int index_;
  cuda::CUdevice handle_ = 0;
  cuda::CUcontext context_ = nullptr;
  cuda::CUstream stream_ = nullptr;
};

/// Bytes on a device, 256-byte aligned; the device outlives them.
class CudaMemory {
 public:
  CudaMemory() = default;
  CudaMemory(const CudaDevice& device, int64_t bytes);
  CudaMemory(CudaMemory&& other) noexcept { *this = std::move(other); }
  CudaMemory& operator=(CudaMemory&& other) noexcept;
  ~CudaMemory();

  const CudaDevice* device() const { return device_; }
  DeviceAddress address() const { return address_; }
  void* data() const { return reinterpret_cast<void*>(address_); }
  int64_t bytes() const { return bytes_; }

 private:
  const CudaDevice* device_ = nullptr;
  DeviceAddress address_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace normc::gate
