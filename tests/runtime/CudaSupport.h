// Common parts of the CUDA tests: a fake driver that is reset, device memory, packages of kernels that are
// only text, and launches as words.
#pragma once

#include <cstring>

#include "codegen/emulator/driver/DriverFunctions.h"
#include "codegen/emulator/driver/FakeCuda.h"
#include "tests/runtime/Support.h"

namespace normc::test {

/// A kernel of TestPackage.h for a CUDA device: alignment 16, phases of 64, 65, ... threads, an entry
/// `SYMBOL_any` for other alignments.
package::Kernel forCuda(package::Kernel kernel, const std::string& isa = "sm_90");

/// True if a launch has the strides of the operand, which is one of a kernel of TestPackage.h.
bool hasStrides(const package::Operand& operand);

/// PTX that declares the kernel's entries with the parameters of runtime/abi/cuda.h, and does nothing.
std::string ptxOf(const package::Kernel& kernel);
/// Returns text that the fake driver accepts as a cubin of the kernel.
std::string cubinOf(const package::Kernel& kernel);

/// A package of such kernels; with `cubins`, of every kernel whose `cubin` is set to anything.
package::Writer cudaPackage(const std::vector<package::Kernel>& kernels);

/// Options that open the fake driver.
normc_context_options fakeDriver();

/// A launch that was recorded, in values.
struct Launched {
  std::string function;
  std::vector<unsigned> grid, block, cluster;
  unsigned shared;
  bool dependent, cooperative;
  int device;
  const void* stream;
  std::vector<uint64_t> words;

  int64_t integer(size_t word) const { return static_cast<int64_t>(words.at(word)); }
  double number(size_t word) const {
    double value;
    std::memcpy(&value, &words.at(word), sizeof value);
    return value;
  }
};
std::vector<Launched> launches();
/// Their functions: "layer_norm_forward layer_norm_finish".
std::string launchedFunctions();
/// The driver's functions that were called, in order, without those of the current context.
std::string driverCalls();

/// Memory of a device's primary context, for as long as the object lives.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t bytes, int device = 0);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;

  float* floats(size_t offset = 0) const { return reinterpret_cast<float*>(address_) + offset; }
  char* data() const { return reinterpret_cast<char*>(address_); }
  host::Buffer buffer() const { return {data(), bytes_}; }

 private:
  cuda::CUdeviceptr address_ = 0;
  size_t bytes_;
  int device_;
};

/// Starts every test with a new driver, and sees that none leaves memory damaged.
class CudaTest : public ::testing::Test {
 protected:
  CudaTest() { fake_cuda_reset(); }
  ~CudaTest() override {
    EXPECT_EQ(fake_cuda_damaged_allocations(), 0u);
    fake_cuda_set_recording(1);
  }

  /// A new driver with these devices, initialised, since a context that is open will not do it again.
  static void restart(const std::vector<fake_cuda_device>& all) {
    fake_cuda_reset();
    fake_cuda_set_devices(static_cast<int>(all.size()), all.data());
    cuda::cuInit(0);
  }
  static host::Package open(const package::Writer& writer) {
    return openInMemory(writer, host::Context(fakeDriver()));
  }
  static host::Package open(const package::Kernel& kernel) { return open(cudaPackage({kernel})); }
};

/// A stream of a device's primary context, which stays current only while it is made.
class Stream {
 public:
  explicit Stream(int device = 0);
  ~Stream();
  Stream(const Stream&) = delete;
  cuda::CUstream get() const { return stream_; }

 private:
  cuda::CUstream stream_ = nullptr;
  int device_;
};

/// Makes a device's primary context current on this thread for a while.
class Current {
 public:
  explicit Current(int device = 0);
  ~Current();
  Current(const Current&) = delete;

 private:
  int device_;
};

/// A layer norm of rows x features on device 0, with all its arrays.
struct CudaLayerNorm {
  int64_t rows, features;
  DeviceBuffer x, dy, y, dx, scale, bias, dscale, dbias, saved, workspace;

  explicit CudaLayerNorm(int64_t rows = 32, int64_t features = 8);

  Tensor matrix(const DeviceBuffer& buffer) const {
    return Tensor(buffer.floats(), {rows, features}).onCuda();
  }
  Tensor vector(const DeviceBuffer& buffer) const { return Tensor(buffer.floats(), {features}).onCuda(); }
  Call forward() const;
  Call backward() const;
  normc_sizes sizes() const { return Plan::sizes(1, rows, features); }
};

}  // namespace normc::test
