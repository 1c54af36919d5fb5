#include "bench/Contestant.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace normc::bench {
namespace {

/// GNU OpenMP's workers spin for up to 14 ms where a `pause` takes long.
constexpr std::chrono::milliseconds kSettle(20);

/// One contestant's place in the race.
struct Runner {
  Contestant* contestant;
  int64_t calls = 1;    ///< in one sample
  int64_t warmUps = 1;  ///< before it
  double seconds = 0;   ///< that one sample takes, all told

  double sample() {
    contestant->run(warmUps);
    const double result = contestant->run(calls) / double(calls);
    settle();
    return result;
  }
  void settle() const {
    if (contestant->spins()) std::this_thread::sleep_for(kSettle);
  }
};

/// As many calls as make a sample long enough, found by doubling; the first calls also warm up.
Runner calibrated(Contestant* contestant, double sampleSeconds) {
  Runner runner{contestant};
  contestant->run(1);
  double elapsed = contestant->run(1);
  while (elapsed < sampleSeconds && runner.calls < int64_t(1) << 30) {
    const double missing = sampleSeconds / std::max(elapsed, sampleSeconds / 16);
    runner.calls = std::max(runner.calls + 1, int64_t(std::ceil(double(runner.calls) * missing * 1.1)));
    elapsed = contestant->run(runner.calls);
  }
  runner.warmUps = std::max<int64_t>(1, runner.calls / 4);
  runner.settle();
  runner.seconds = elapsed * (1 + double(runner.warmUps) / double(runner.calls));
  if (contestant->spins()) runner.seconds += std::chrono::duration<double>(kSettle).count();
  return runner;
}

}  // namespace

std::vector<Samples> race(const std::vector<Contestant*>& contestants, const RaceOptions& options) {
  std::vector<Runner> runners;
  double roundSeconds = 1e-9;
  for (Contestant* contestant : contestants) {
    runners.push_back(calibrated(contestant, std::max(options.sampleSeconds, 20e-6)));
    roundSeconds += runners.back().seconds;
  }
  const int rounds =
      int(std::clamp(options.seconds / roundSeconds, double(options.minRounds), double(options.maxRounds)));
  std::vector<Samples> samples(runners.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < runners.size(); ++i) {
      const size_t turn = (i + round) % runners.size();
      samples[turn].push_back(runners[turn].sample());
    }
  return samples;
}

}  // namespace normc::bench
