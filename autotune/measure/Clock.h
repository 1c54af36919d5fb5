// The monotonic clock of the tuner.
#pragma once

#include <algorithm>
#include <chrono>

namespace normc::measure {

using Clock = std::chrono::steady_clock;

/// Seconds that stand for any longer wait; the range of the clock ends at about nine times this.
inline constexpr double kLongestWait = 1e9;

inline double secondsNow() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

/// Returns the time `seconds` from now, between now and the longest wait.
inline Clock::time_point deadlineIn(double seconds) {
  const std::chrono::duration<double> wait(std::clamp(seconds, 0.0, kLongestWait));
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
}

}  // namespace normc::measure
