#include "autotune/gate/CudaDevice.h"

#include <dlfcn.h>

#include <algorithm>

namespace normc::gate {

using namespace cuda;

CudaDriver::CudaDriver(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char* reason = dlerror();
    throw CudaError("cannot load the CUDA driver " + library + ": " + (reason ? reason : "no reason given"));
  }
  const auto find = [&](const char* symbol) {
    void* const function = dlsym(handle, symbol);
    if (!function) throw CudaError(library + " has no function " + symbol + "; it needs CUDA 11.8 or newer");
    return function;
  };
#define NORMC_GATE_FIND(name, parameters) name = reinterpret_cast<decltype(name)>(find(#name));
  NORMC_CUDA_DRIVER_API(NORMC_GATE_FIND)
  NORMC_CUDA_HOST_API(NORMC_GATE_FIND)
#undef NORMC_GATE_FIND
  check(cuInit(0), "starting the CUDA driver " + library);
}

void CudaDriver::check(CUresult result, const std::string& doing) const {
  if (result == CUDA_SUCCESS) return;
  const char *name = nullptr, *meaning = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &meaning);
  throw CudaError(doing + ": " + (name ? std::string(name) : "CUDA error " + std::to_string(result)) +
                  (meaning ? std::string(", ") + meaning : ""));
}

CudaDevice::CudaDevice(int index, const std::string& library) : driver_(library), index_(index) {
  int devices = 0;
  driver_.check(driver_.cuDeviceGetCount(&devices), "counting the CUDA devices");
  if (index < 0 || index >= devices)
    throw CudaError("there is no device " + name() + "; this machine has " + std::to_string(devices));
  driver_.check(driver_.cuDeviceGet(&handle_, index), "getting " + name());
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, handle_),
                "taking the primary context of " + name());
  try {
    const Current current(*this);
    driver_.check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream on " + name());
  } catch (...) {
    driver_.cuDevicePrimaryCtxRelease_v2(handle_);
    throw;
  }
}

CudaDevice::~CudaDevice() {
  if (driver_.cuCtxPushCurrent_v2(context_) == CUDA_SUCCESS) {
    driver_.cuStreamDestroy_v2(stream_);
    CUcontext popped;
    driver_.cuCtxPopCurrent_v2(&popped);
  }
  driver_.cuDevicePrimaryCtxRelease_v2(handle_);
}

int CudaDevice::attribute(CUdevice_attribute which) const {
  int value = 0;
  driver_.check(driver_.cuDeviceGetAttribute(&value, which, handle_), "asking " + name() + " for a fact");
  return value;
}

void CudaDevice::upload(DeviceAddress to, const void* from, int64_t bytes) const {
  const Current current(*this);
  driver_.check(driver_.cuMemcpyHtoDAsync_v2(to, from, size_t(bytes), stream_),
                "copying " + std::to_string(bytes) + " bytes to " + name());
}

void CudaDevice::download(void* to, DeviceAddress from, int64_t bytes) const {
  const Current current(*this);
  driver_.check(driver_.cuMemcpyDtoHAsync_v2(to, from, size_t(bytes), stream_),
                "copying " + std::to_string(bytes) + " bytes from " + name());
}

void CudaDevice::repeat(DeviceAddress to, int64_t have, int64_t bytes) const {
  const Current current(*this);
  for (int64_t done = have; done < bytes; done *= 2)
    driver_.check(driver_.cuMemcpyDtoDAsync_v2(to + done, to, size_t(std::min(done, bytes - done)), stream_),
                  "filling a buffer on " + name());
}

void CudaDevice::fill(DeviceAddress to, uint8_t value, int64_t bytes) const {
  const Current current(*this);
  driver_.check(driver_.cuMemsetD8Async(to, value, size_t(bytes), stream_),
                "filling " + std::to_string(bytes) + " bytes of " + name());
}

void CudaDevice::synchronize() const {
  const Current current(*this);
  driver_.check(driver_.cuStreamSynchronize(stream_), "waiting for " + name());
}

bool CudaDevice::alive() const {
  try {
    synchronize();
    return true;
  } catch (const CudaError&) {
    return false;
  }
}

CudaDevice::Current::Current(const CudaDevice& device) : driver_(device.driver_) {
  driver_.check(driver_.cuCtxPushCurrent_v2(device.context_), "making " + device.name() + " current");
}

CudaDevice::Current::~Current() {
  CUcontext popped;
  driver_.cuCtxPopCurrent_v2(&popped);
}

CudaMemory::CudaMemory(const CudaDevice& device, int64_t bytes) : bytes_(bytes) {
  const CudaDevice::Current current(device);
  device.driver().check(device.driver().cuMemAlloc_v2(&address_, size_t(std::max<int64_t>(bytes, 1))),
                        "allocating " + std::to_string(bytes) + " bytes on " + device.name());
  device_ = &device;
}

CudaMemory& CudaMemory::operator=(CudaMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

CudaMemory::~CudaMemory() {
  if (!device_) return;
  try {
    const CudaDevice::Current current(*device_);
    device_->driver().cuMemFree_v2(address_);
  } catch (const CudaError&) {  // the context and its memory are lost
  }
}

}  // namespace normc::gate
