#include "autotune/tune/ThisDevice.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "autotune/measure/Machine.h"
#include "runtime/normc.hpp"

namespace normc::tune {

Device thisProcessor(const std::string& arch) {
  const measure::Machine m = measure::thisMachine();
  return {"cpu",
          arch,
          m.processor,
          {{"cores", m.online}, {"own_cache", m.secondCache}, {"last_cache", m.lastCache}}};
}

Device thisCudaDevice(int index, const std::string& cudaLibrary) {
  normc_context_options options{};
  options.cuda_library = cudaLibrary.c_str();
  const normc_cuda_device d = host::Context(options).cudaDevice(index);
  const int number = 10 * d.compute_major + d.compute_minor;
  return {"cuda",
          "sm_" + std::to_string(number),
          d.name,
          {{"compute", number},
           {"multiprocessors", d.multiprocessors},
           {"l2_bytes", d.l2_bytes},
           {"memory_clock_khz", d.memory_clock_khz},
           {"memory_bus_bits", d.memory_bus_bits}}};
}

std::string newSession() {
  std::random_device device;
  std::string name;
  for (int i = 0; i < 16; ++i) name += "0123456789abcdef"[device() % 16];
  return name;
}

int64_t newStamp(const std::vector<Record>& known) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  int64_t stamp = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  for (const Record& record : known) stamp = std::max(stamp, record.stamp + 1);
  return std::min(stamp, kMostWhole);
}

}  // namespace normc::tune
