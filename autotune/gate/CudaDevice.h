// A CUDA device as the gate and the benchmarks use it: memory, copies and a stream
// around the kernels that the runtime launches.
//
// The driver is opened by its name, so that a test can give another. What the
// runtime opens is the same library and the same primary context; nothing else is
// shared with it, and this needs no toolkit.
//
// Failures are thrown as CudaError: "copying 64 bytes to cuda:0: CUDA_ERROR_...".
// An error of a kernel shows at the next synchronize(), and at everything after it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/abi/CudaDriver.h"

namespace normc::cuda {

/// The functions of an open driver, for a host.
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

/// The driver, `driver.cuInit(0)`; it stays loaded until the process ends.
struct CudaDriver : cuda::HostTable {
  static constexpr const char* kLibrary = "libcuda.so.1";

  /// Opens and initialises.
  explicit CudaDriver(const std::string& library);
  /// Throws "DOING: CUDA_ERROR_NAME, what it means" unless the result is success.
  void check(cuda::CUresult result, const std::string& doing) const;
};

using DeviceAddress = cuda::CUdeviceptr;

/// One device for one thread at a time; another thread makes another.
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
  /// Of its own, and not ordered with the default stream.
  cuda::CUstream stream() const { return stream_; }

  /// Copies on the stream. `from` and `to` of the host must stay until synchronize().
  void upload(DeviceAddress to, const void* from, int64_t bytes) const;
  void download(void* to, DeviceAddress from, int64_t bytes) const;
  /// Writes the first `have` bytes again and again, until there are `bytes`.
  void repeat(DeviceAddress to, int64_t have, int64_t bytes) const;
  void fill(DeviceAddress to, uint8_t value, int64_t bytes) const;
  void synchronize() const;
  /// Whether the context can still be used; after a kernel that failed it cannot.
  bool alive() const;

  /// The device's primary context, current on this thread while the object lives.
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
