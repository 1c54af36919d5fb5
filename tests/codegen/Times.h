// Times of compilations, for the programs that measure them.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "llvm/ADT/StringExtras.h"

namespace normc::codegen {

/// Milliseconds on the wall, and of this process and the children it has waited for: what others do at the
/// same time is not in the second.
struct Time {
  double wall, processor;

  static double of(int who) {
    rusage usage;
    getrusage(who, &usage);
    const auto ms = [](const timeval& t) { return 1e3 * double(t.tv_sec) + 1e-3 * double(t.tv_usec); };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
  }
  static Time now() {
    const std::chrono::duration<double, std::milli> wall =
        std::chrono::steady_clock::now().time_since_epoch();
    return {wall.count(), of(RUSAGE_SELF) + of(RUSAGE_CHILDREN)};
  }
  Time since(const Time& begin) const { return {wall - begin.wall, processor - begin.processor}; }
};

/// Prints the distribution of these times, those of the wall and of the processor.
inline void report(const char* what, std::vector<Time> times) {
  if (times.empty()) return;
  for (const bool wall : {true, false}) {
    const auto part = wall ? &Time::wall : &Time::processor;
    std::ranges::sort(times, {}, part);
    std::printf("%s, %s: median %.0f ms, nine in ten within %.0f ms, at most %.0f ms\n", what,
                wall ? "on the wall" : "of the processor", times[times.size() / 2].*part,
                times[times.size() * 9 / 10].*part, times.back().*part);
  }
}

/// Splits a text at commas.
inline std::vector<std::string> listOf(const std::string& text) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ',', -1, false);
  return {parts.begin(), parts.end()};
}

}  // namespace normc::codegen
