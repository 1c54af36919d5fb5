#include "runtime/cuda/Cuda.h"

#include <algorithm>

namespace normc::runtime {

normc_status Cuda::driver(std::shared_ptr<const Driver>& driver) const {
  const std::lock_guard lock(mutex_);
  if (!driver_) NORMC_TRY(Driver::open(library_.empty() ? "libcuda.so.1" : library_, driver_));
  driver = driver_;
  return NORMC_OK;
}

normc_status Cuda::device(int ordinal, std::shared_ptr<const Device>& device) const {
  std::shared_ptr<const Driver> driver;
  NORMC_TRY(this->driver(driver));
  DeviceFacts facts;
  NORMC_TRY(DeviceFacts::read(*driver, ordinal, facts));
  cuda::CUcontext context = nullptr;
  bool retained = false;
  NORMC_TRY(Device::contextOf(*driver, facts, context, retained));
  // Retained once more than the existing object needs; released with this one.
  auto made = std::make_shared<const Device>(driver, std::move(facts), context, retained);
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Device>& known = devices_[Key(ordinal, context)];
  device = known.lock();
  if (!device) known = device = std::move(made);
  return NORMC_OK;
}

normc_status Cuda::info(int ordinal, normc_cuda_device& info) const {
  using namespace cuda;
  std::shared_ptr<const Driver> driver;
  NORMC_TRY(this->driver(driver));
  DeviceFacts facts;
  NORMC_TRY(DeviceFacts::read(*driver, ordinal, facts));
  size_t memory = 0;
  NORMC_TRY(driver->check((*driver)->cuDeviceTotalMem_v2(&memory, facts.handle), "asking ", facts.label(),
                          " for its memory"));
  const auto attribute = [&](CUdevice_attribute which) { return driver->attribute(facts.handle, which); };
  info = {};
  facts.name.copy(info.name, sizeof info.name - 1);
  info.compute_major = facts.arch.major;
  info.compute_minor = facts.arch.minor;
  info.driver_version = driver->version();
  info.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.threads_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  info.registers_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  info.clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  info.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  info.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  info.memory_bytes = static_cast<int64_t>(memory);
  info.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  info.shared_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  info.shared_per_block = facts.sharedPerBlock;
  return NORMC_OK;
}

}  // namespace normc::runtime
