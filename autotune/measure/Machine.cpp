#include "autotune/measure/Machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace normc::measure {
namespace {

/// The text after the colon of the first line of `file` that begins with `key`.
std::string valueOf(const char* file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(':');
    if (line.rfind(key, 0) != 0 || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

/// Reads `1024K`, `32M`.
int64_t sizeOf(const std::string& text) {
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  return number * (*end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 1);
}

void readCaches(Machine& machine) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::ifstream level(folder + "level"), size(folder + "size");
    int number = 0;
    std::string text;
    if (!(level >> number) || !(size >> text)) continue;
    if (number == 2) machine.secondCache = sizeOf(text);
    machine.lastCache = std::max(machine.lastCache, sizeOf(text));
  }
  // Where the system tells nothing: sizes that are common. The C library's own figure for the last cache can
  // be the sum over a whole processor, of which one core can use a tenth.
  if (machine.secondCache <= 0) machine.secondCache = 512 << 10;
  if (machine.lastCache <= machine.secondCache) machine.lastCache = 32 << 20;
}

}  // namespace

Machine thisMachine() {
  Machine machine;
  machine.processor = valueOf("/proc/cpuinfo", "model name");
  if (machine.processor.empty()) machine.processor = "unknown processor";
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) machine.processors = std::max(1, CPU_COUNT(&set));
  machine.online = std::max(machine.processors, int(sysconf(_SC_NPROCESSORS_ONLN)));
  readCaches(machine);
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
