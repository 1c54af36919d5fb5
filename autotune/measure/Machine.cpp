#include "autotune/measure/Machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "autotune/measure/Caches.h"
#include "autotune/measure/SystemText.h"
#include "runtime/threads/Threads.h"

namespace normc::measure {
namespace {

/// Returns the text after the colon of the first line of `file` that begins with `key`.
std::string valueOf(const char* file, const std::string& key) {
  std::istringstream stream(systemText(file));
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

/// Common sizes, for a system that describes no caches. The C library's size of the last one may be the sum
/// over a whole socket, of which one core reaches a tenth.
constexpr Caches kCommon{.first = 32 << 10, .second = 512 << 10, .last = 32 << 20};

}  // namespace

Machine thisMachine() {
  Machine machine;
  machine.processor = valueOf("/proc/cpuinfo", "model name");
  if (machine.processor.empty()) machine.processor = "unknown processor";
  machine.processors = runtime::availableProcessors();
  machine.online = std::max(machine.processors, int(sysconf(_SC_NPROCESSORS_ONLN)));
  const Caches caches = cachesIn(kCacheFolder, kCommon);
  machine.secondCache = caches.second;
  machine.lastCache = caches.last;
  machine.memory = std::atoll(valueOf("/proc/meminfo", "MemAvailable").c_str()) << 10;
  if (machine.memory <= 0) machine.memory = int64_t(1) << 30;
  return machine;
}

std::string bytesText(int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, value < 9.95 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

std::string Machine::text() const {
  return processor + ", " + std::to_string(processors) + (processors == 1 ? " core" : " cores") +
         ", second-level cache " + bytesText(secondCache) + ", last " + bytesText(lastCache);
}

}  // namespace normc::measure
