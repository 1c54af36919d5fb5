#include "runtime/cpu/Threads.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace normc::runtime {
namespace {

constexpr const char* kModule = "libnormc_threads.so.0";

/// The folder of this library, with a slash: the module is installed beside it.
std::string ownFolder() {
  Dl_info info;
  // A function that is not exported: another copy of the library cannot stand in for it.
  if (!dladdr(reinterpret_cast<const void*>(&availableProcessors), &info) || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

}  // namespace

int availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)  // more processors than the set has bits
    return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return std::max(1, CPU_COUNT(&set));
}

normc_parallel_for loadDefaultPool(std::string& why) {
  const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  void* module = nullptr;
  if (const std::string folder = ownFolder(); !folder.empty())
    module = dlopen((folder + kModule).c_str(), flags);
  if (!module) module = dlopen(kModule, flags);
  if (!module) {
    const char* reason = dlerror();
    why = reason ? reason : "unknown reason";
    return nullptr;
  }
  void* const function = dlsym(module, "normc_threads_parallel_for");
  if (!function) why = std::string(kModule) + " has no normc_threads_parallel_for";
  return reinterpret_cast<normc_parallel_for>(function);
}

}  // namespace normc::runtime
