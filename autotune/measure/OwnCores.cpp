#include "autotune/measure/OwnCores.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <functional>
#include <string>

namespace normc::measure {
namespace {

/// Calls `tell` for all threads of this process. Threads that begin or end meanwhile may be missed.
void forEachThread(const std::function<void(pid_t)>& tell) {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    const std::string name = entry.path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    tell(thread);
  }
}

void allow(pid_t thread, const cpu_set_t& set) { sched_setaffinity(thread, sizeof set, &set); }

}  // namespace

OwnCores::OwnCores() {
  CPU_ZERO(&all_);
  if (sched_getaffinity(0, sizeof all_, &all_) != 0 || CPU_COUNT(&all_) < 2) return;
  int first = 0;
  while (!CPU_ISSET(size_t(first), &all_)) ++first;
  cpu_set_t own, others = all_;
  CPU_ZERO(&own);
  CPU_SET(size_t(first), &own);
  CPU_CLR(size_t(first), &others);
  const pid_t caller = gettid();
  forEachThread([&](pid_t thread) { allow(thread, thread == caller ? own : others); });
}

OwnCores::~OwnCores() {
  if (CPU_COUNT(&all_) < 2) return;
  forEachThread([&](pid_t thread) { allow(thread, all_); });
}

}  // namespace normc::measure
