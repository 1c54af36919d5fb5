#include "bench/gpu/Facts.h"

#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/normc.h"

namespace normc::gpu {
namespace {

using namespace cuda;

/// The line of a file of the system that begins with `key`, after its colon.
std::string systemFact(const char* file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with(key)) {
      const size_t colon = line.find(':');
      return colon == line.npos ? line : line.substr(line.find_first_not_of(" \t", colon + 1));
    }
  return "";
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  char text[32];
  std::tm parts;
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &parts));
  return text;
}

}  // namespace

std::string archOf(const gate::CudaDevice& device) {
  return "sm_" + std::to_string(10 * device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                                device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

Json factsOf(const gate::CudaDevice& device) {
  const gate::CudaDevice::Current current(device);
  const gate::CudaDriver& driver = device.driver();
  char name[256] = "", bus[64] = "";
  int version = 0;
  size_t free = 0, total = 0;
  driver.check(driver.cuDeviceGetName(name, sizeof name, device.handle()), "asking for the device's name");
  driver.check(driver.cuDriverGetVersion(&version), "asking for the driver's version");
  driver.check(driver.cuMemGetInfo_v2(&free, &total), "asking for the device's memory");
  if (driver.cuDeviceGetPCIBusId(bus, sizeof bus, device.handle()) != CUDA_SUCCESS) bus[0] = '\0';
  const double memoryClock = device.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const double busBits = device.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  return {
      {"kind", "facts"},
      {"date", now()},
      {"normc", normc_version()},
      {"device", name},
      {"pci", bus},
      {"arch", archOf(device)},
      {"cuda_version_of_driver", version},
      {"driver", systemFact("/proc/driver/nvidia/version", "NVRM")},
      {"memory_bytes", total},
      {"memory_free_bytes", free},
      {"l2_bytes", device.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)},
      {"multiprocessors", device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)},
      {"threads_per_multiprocessor", device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)},
      {"shared_per_multiprocessor",
       device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)},
      {"clock_khz", device.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)},
      {"memory_clock_khz", memoryClock},
      {"memory_bus_bits", busBits},
      {"theoretical_gbps", 2 * memoryClock * 1e3 * busBits / 8 * 1e-9},
      {"processor", systemFact("/proc/cpuinfo", "model name")},
      {"processor_threads", std::thread::hardware_concurrency()},
  };
}

}  // namespace normc::gpu
