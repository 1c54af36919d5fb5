#include "autotune/measure/QuietCoreSampler.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "autotune/measure/Clock.h"

namespace normc::measure {
namespace {

constexpr int kSteps = 4000;  // of each loop: some microseconds
constexpr double kWaitingSlack = 1.05, kFillingSlack = 1.15;
constexpr std::chrono::milliseconds kWait(1);

long interruptions() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double waiting() {
  const auto begin = Clock::now();
  uint64_t x = 1;
  for (int i = 0; i < kSteps; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(x));
  }
  return since(begin);
}

/// Eight independent sums, more than any core adds at once.
double filling() {
  const auto begin = Clock::now();
  uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
  for (int i = 0; i < kSteps; i += 4)
    for (int k = 0; k < 4; ++k) {
      a += 3;
      b += 5;
      c += 7;
      d += 9;
      e += 11;
      f += 13;
      g += 15;
      h += 17;
      asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    }
  return since(begin);
}

}  // namespace

Loops loopsNow() { return {.waiting = waiting(), .filling = filling(), .interruptions = interruptions()}; }

Loops fastest(const Loops& a, const Loops& b) {
  return {std::min(a.waiting, b.waiting), std::min(a.filling, b.filling)};
}

QuietCoreSampler::QuietCoreSampler(double patience, const Loops& known, std::function<Loops()> loops)
    : loops_(std::move(loops)), best_(known), patience_(patience) {
  for (int i = 0; i < 50; ++i) best_ = fastest(best_, loops_());
}

bool QuietCoreSampler::isDisturbed(const Loops& before, const Loops& after, const Loops& best) {
  auto slow = [&](const Loops& l) {
    return l.waiting > kWaitingSlack * best.waiting || l.filling > kFillingSlack * best.filling;
  };
  return after.interruptions != before.interruptions || slow(before) || slow(after);
}

void QuietCoreSampler::waitFor(double seconds) { end_ = deadlineIn(seconds); }

double QuietCoreSampler::sample(const std::function<double()>& take) {
  for (;;) {
    const auto begin = Clock::now();
    const Loops before = loops_();
    const double result = take();
    Loops after = loops_();
    best_ = fastest(best_, fastest(before, after));
    if (!isDisturbed(before, after, best_)) return result;
    if (patience_ <= 0 || Clock::now() >= end_) {
      ++accepted_;
      return result;
    }
    ++disturbed_;
    // A busy neighbour stays busy for a while.
    do {
      std::this_thread::sleep_for(kWait);
      after = loops_();
    } while (isDisturbed(after, after, best_) && since(begin) < patience_ && Clock::now() < end_);
    patience_ -= since(begin);
  }
}

}  // namespace normc::measure
