#include "autotune/tune/Here.h"

#include <random>

#include "autotune/measure/Machine.h"

namespace normc::tune {

Device processorHere(const std::string& arch) {
  const measure::Machine m = measure::thisMachine();
  return {"cpu", arch, m.processor, {{"cores", m.processors}, {"own_cache", m.secondCache}, {"last_cache", m.lastCache}}};
}

std::string newSession() {
  std::random_device device;
  std::string name;
  for (int i = 0; i < 16; ++i) name += "0123456789abcdef"[device() % 16];
  return name;
}

}  // namespace normc::tune
