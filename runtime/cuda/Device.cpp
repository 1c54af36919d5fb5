#include "runtime/cuda/Device.h"

#include "runtime/cuda/Module.h"

namespace normc::runtime {
namespace {

using namespace cuda;

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

class DeviceMemory final : public MemoryBlock {
 public:
  explicit DeviceMemory(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
  ~DeviceMemory() override {
    if (!data_) return;
    const Device::Aside guard(*device_);
    if (guard.isCurrent()) device_->driver()->cuMemFree_v2(address(data_));
  }

  normc_status read(size_t offset, void* to, size_t bytes) const override {
    return device_->toHost(to, static_cast<const char*>(data_) + offset, bytes);
  }
  normc_status write(size_t offset, const void* from, size_t bytes) override {
    return device_->toDevice(static_cast<char*>(data_) + offset, from, bytes);
  }

  void take(CUdeviceptr address, size_t bytes) {
    data_ = pointer(address);
    bytes_ = bytes;
  }

 private:
  std::shared_ptr<const Device> device_;
};

}  // namespace

normc_status DeviceFacts::read(const Driver& driver, int ordinal, DeviceFacts& facts) {
  facts.ordinal = ordinal;
  NORMC_TRY(driver.device(ordinal, facts.handle));
  facts.name = driver.name(facts.handle);
  facts.arch.major = driver.attribute(facts.handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts.arch.minor = driver.attribute(facts.handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.sharedPerBlock =
      driver.attribute(facts.handle, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  facts.multiprocessors = driver.attribute(facts.handle, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return NORMC_OK;
}

normc_status Device::contextOf(const Driver& driver, const DeviceFacts& facts, CUcontext& context,
                               bool& retained) {
  CUcontext current = nullptr;
  NORMC_TRY(driver.check(driver->cuCtxGetCurrent(&current), "asking for the current context"));
  CUdevice device = -1;
  const bool host = current && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS && device == facts.handle;
  // Retaining an inactive primary context would create it, in addition to the host's own context.
  unsigned flags = 0;
  int active = 0;
  if (host) {
    NORMC_TRY(driver.check(driver->cuDevicePrimaryCtxGetState(facts.handle, &flags, &active),
                           "asking for the state of the primary context of ", facts.label()));
    context = current;
    retained = false;
    if (!active) return NORMC_OK;
  }
  CUcontext primary = nullptr;
  NORMC_TRY(driver.check(driver->cuDevicePrimaryCtxRetain(&primary, facts.handle),
                         "taking the primary context of ", facts.label()));
  retained = !host || primary == current;
  if (retained)
    context = primary;
  else
    driver->cuDevicePrimaryCtxRelease_v2(facts.handle);
  return NORMC_OK;
}

Device::Device(std::shared_ptr<const Driver> driver, DeviceFacts facts, CUcontext context, bool retained)
    : driver_(std::move(driver)),
      facts_(std::move(facts)),
      context_(context),
      retained_(retained),
      label_(facts_.label()) {}

Device::~Device() {
  if (retained_) (*driver_)->cuDevicePrimaryCtxRelease_v2(facts_.handle);
}

Device::Guard::Guard(const Device& device) : device_(device) {
  const Driver& driver = device.driver();
  CUcontext current = nullptr;
  result_ = driver->cuCtxGetCurrent(&current);
  if (result_ != CUDA_SUCCESS || current == device.context_) return;
  result_ = driver->cuCtxPushCurrent_v2(device.context_);
  pushed_ = result_ == CUDA_SUCCESS;
}

Device::Guard::~Guard() {
  CUcontext popped;
  if (pushed_) device_.driver()->cuCtxPopCurrent_v2(&popped);
}

normc_status Device::Guard::status() const {
  return device_.driver().check(result_, "making the context of ", device_.label(), " current");
}

Device::Aside::Aside(const Device& device)
    : Guard(device),
      driver_(device.driver()),
      exchanged_(isCurrent() && driver_->cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {}

Device::Aside::~Aside() {
  if (exchanged_) driver_->cuThreadExchangeStreamCaptureMode(&mode_);
}

normc_status Device::checkStream(CUstream stream) const {
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  if (handle <= kPerThreadStream) return NORMC_OK;  // the default streams exist in every context
  CUcontext owner = nullptr;
  const CUresult result = driver()->cuStreamGetCtx(stream, &owner);
  if (result == CUDA_SUCCESS && owner != context_) [[unlikely]]
    return refuseStream(owner);
  if (result == CUDA_ERROR_NOT_SUPPORTED) return NORMC_OK;  // the driver does not support the query
  return driver().check(result, "asking the stream for its context");
}

normc_status Device::refuseStream(CUcontext other) const {
  CUdevice device = facts_.handle;
  if (driver()->cuCtxPushCurrent_v2(other) == CUDA_SUCCESS) {
    driver()->cuCtxGetDevice(&device);
    driver()->cuCtxPopCurrent_v2(&other);
  }
  if (device != facts_.handle)
    return fail(NORMC_INVALID_ARGUMENT, "the stream belongs to another device; this plan runs on ", label(),
                ": give it a stream of that device");
  return fail(NORMC_INVALID_ARGUMENT, "the stream belongs to another context of ", label(),
              " than the plan; make the plan while the stream's context is current");
}

normc_status Device::load(const std::string& key, const std::string& what, const char* image,
                          std::shared_ptr<const Module>& module) const {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Module>& known = modules_[key];
  if ((module = known.lock())) return NORMC_OK;
  NORMC_TRY(Module::load(shared_from_this(), what, image, module));
  known = module;
  return NORMC_OK;
}

normc_status Device::allocate(size_t bytes, std::unique_ptr<MemoryBlock>& memory) const {
  const Aside guard(*this);
  NORMC_TRY(guard.status());
  auto made = std::make_unique<DeviceMemory>(
      shared_from_this());  // allocated first: if it threw later, the memory would leak
  CUdeviceptr address = 0;
  NORMC_TRY(driver().check(driver()->cuMemAlloc_v2(&address, bytes), "allocating ", bytes, " bytes on ",
                           label(), " for a state"));
  made->take(address, bytes);
  memory = std::move(made);
  return NORMC_OK;
}

normc_status Device::toDevice(void* to, const void* from, size_t bytes) const {
  const Guard guard(*this);
  NORMC_TRY(guard.status());
  NORMC_TRY(driver().check(driver()->cuMemcpyHtoDAsync_v2(address(to), from, bytes, nullptr), "copying ",
                           bytes, " bytes to ", label()));
  return driver().check(driver()->cuStreamSynchronize(nullptr), "waiting for a copy to ", label());
}

normc_status Device::toHost(void* to, const void* from, size_t bytes) const {
  const Guard guard(*this);
  NORMC_TRY(guard.status());
  NORMC_TRY(driver().check(driver()->cuMemcpyDtoHAsync_v2(to, address(from), bytes, nullptr), "copying ",
                           bytes, " bytes from ", label()));
  return driver().check(driver()->cuStreamSynchronize(nullptr), "waiting for a copy from ", label());
}

}  // namespace normc::runtime
