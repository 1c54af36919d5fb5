#include "autotune/measure/Contestant.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "autotune/measure/Order.h"
#include "autotune/measure/OwnCores.h"
#include "autotune/measure/QuietCoreSampler.h"

namespace normc::measure {
namespace {

/// GNU OpenMP's workers spin for up to 14 ms on processors with a slow `pause`.
constexpr std::chrono::milliseconds kSettle(20);
/// A call of so many seconds needs no untimed one before it for the caches: it replaces all that they hold
/// early on. Threads that slept may need one.
constexpr double kOwnWarmUp = 0.02;

}  // namespace

Runner::Runner(Contestant& contestant, double sampleSeconds, double warmUpSeconds)
    : contestant_(&contestant) {
  contestant.run(1);
  double elapsed = contestant.run(1);
  while (elapsed < sampleSeconds && calls_ < int64_t(1) << 30) {
    const double missing = sampleSeconds / std::max(elapsed, sampleSeconds / 16);
    calls_ = std::max(calls_ + 1, int64_t(std::ceil(double(calls_) * missing * 1.1)));
    elapsed = contestant.run(calls_);
  }
  warmUps_ = calls_ == 1 && elapsed >= kOwnWarmUp ? 0 : std::max<int64_t>(1, calls_ / 4);
  if (elapsed > 0)
    warmUps_ = std::max(warmUps_, int64_t(std::ceil(warmUpSeconds / elapsed * double(calls_))));
  settle();
  seconds_ = elapsed * (1 + double(warmUps_) / double(calls_));
  if (contestant.spins()) seconds_ += std::chrono::duration<double>(kSettle).count();
}

double Runner::sample() {
  if (warmUps_) contestant_->run(warmUps_);
  const double result = contestant_->run(calls_) / double(calls_);
  settle();
  return result;
}

void Runner::settle() const {
  if (contestant_->spins()) std::this_thread::sleep_for(kSettle);
}

std::vector<Samples> race(const std::vector<Contestant*>& contestants, const RaceOptions& options) {
  std::vector<Runner> runners;
  double roundSeconds = 1e-9;
  for (Contestant* contestant : contestants) {
    runners.emplace_back(*contestant, std::max(options.sampleSeconds, 20e-6), options.warmUpSeconds);
    roundSeconds += runners.back().seconds();
  }
  std::optional<OwnCores> bound;
  if (options.ownCores) bound.emplace();
  const int rounds =
      int(std::clamp(options.seconds / roundSeconds, double(options.minRounds), double(options.maxRounds)));
  QuietCoreSampler quiet(options.patience * options.seconds);
  std::vector<Samples> samples(runners.size());
  for (int round = 0; round < rounds; ++round)
    for (const size_t turn : orderOfRound(runners.size(), round))
      samples[turn].push_back(quiet.sample([&] { return runners[turn].sample(); }));
  return samples;
}

}  // namespace normc::measure
