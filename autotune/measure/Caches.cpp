#include "autotune/measure/Caches.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "autotune/measure/SystemText.h"

namespace normc::measure {
namespace {

/// A processor has fewer caches than this.
constexpr int kMostCaches = 16;
/// No cache is larger.
constexpr int64_t kMostBytes = int64_t(1) << 40;

/// Returns the first word of a file, or nothing.
std::string wordIn(const std::string& path) {
  std::istringstream file(systemText(path));
  std::string word;
  file >> word;
  return word;
}

/// Reads `1024K`, `32M`. Returns 0 for any other text.
int64_t sizeOf(const std::string& text) {
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  const std::string unit = end;
  const int64_t bytes = unit.empty()  ? 1
                        : unit == "K" ? 1 << 10
                        : unit == "M" ? 1 << 20
                        : unit == "G" ? 1 << 30
                                      : 0;
  return bytes > 0 && number > 0 && number <= kMostBytes / bytes ? number * bytes : 0;
}

int64_t systemSize(int name) { return std::max<int64_t>(0, sysconf(name)); }

}  // namespace

Caches cachesIn(const std::string& folder, const Caches& otherwise) {
  Caches caches;
  for (int index = 0; index < kMostCaches; ++index) {
    const std::string cache = folder + "/index" + std::to_string(index) + "/";
    const std::string number = wordIn(cache + "level"), type = wordIn(cache + "type");
    if (number.empty() && type.empty()) break;  // there is no such cache, and none behind it
    const int level = std::atoi(number.c_str());
    if (level < 1 || (type != "Data" && type != "Unified")) continue;
    int64_t& size = level == 1 ? caches.first : level == 2 ? caches.second : caches.last;
    size = std::max(size, sizeOf(wordIn(cache + "size")));
  }
  if (caches.first == 0) caches.first = otherwise.first;
  if (caches.second <= caches.first) caches.second = otherwise.second;
  if (caches.last <= caches.second) caches.last = otherwise.last;
  return caches;
}

Caches thisCaches() {
  return cachesIn(kCacheFolder, {systemSize(_SC_LEVEL1_DCACHE_SIZE), systemSize(_SC_LEVEL2_CACHE_SIZE),
                                 systemSize(_SC_LEVEL3_CACHE_SIZE)});
}

}  // namespace normc::measure
