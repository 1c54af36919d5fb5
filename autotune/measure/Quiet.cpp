#include "autotune/measure/Quiet.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace normc::measure {
namespace {

constexpr int kSteps = 4000;  // some microseconds: each step waits for the one before
constexpr double kSlack = 1.05;

long switches() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

double Quiet::loop() {
  const auto begin = std::chrono::steady_clock::now();
  uint64_t x = 1;
  for (int i = 0; i < kSteps; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(x));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Quiet::Quiet() {
  best_ = loop();
  for (int i = 0; i < 50; ++i) best_ = std::min(best_, loop());
}

bool Quiet::isDisturbed(double before, double after, double best, long switches) {
  return switches > 0 || before > kSlack * best || after > kSlack * best;
}

double Quiet::sample(const std::function<double()>& take, int attempts) {
  for (;;) {
    const double before = loop();
    const long begun = switches();
    const double result = take();
    const long interrupted = switches() - begun;
    const double after = loop();
    best_ = std::min({best_, before, after});
    if (--attempts <= 0 || !isDisturbed(before, after, best_, interrupted)) return result;
    ++disturbed_;
  }
}

}  // namespace normc::measure
