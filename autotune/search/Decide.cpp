#include "autotune/search/Decide.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace normc::tune {

double noiseOf(const Samples& ours, const Samples& theirs) {
  const Samples medians = measure::bootstrappedRatios(ours, theirs);
  const double middle = measure::median(medians);
  Samples deviations;
  for (const double each : medians) deviations.push_back(std::fabs(each - middle));
  return measure::median(deviations);
}

bool clearlySlower(const Samples& theirs, const Samples& ours) {
  const Samples medians = measure::bootstrappedRatios(theirs, ours);
  return medians[medians.size() / 200] > 1;
}

Decision decide(const Landscape& landscape, const std::vector<Racer>& racers) {
  const auto byDefault = std::find_if(racers.begin(), racers.end(),
                                      [&](const Racer& r) { return r.point == landscape.byDefault(); });
  assert(byDefault != racers.end());
  const auto wins = [&](const Racer& racer) {
    if (racer.point == byDefault->point) return false;
    if (measure::medianRatio(racer.samples, byDefault->samples) > 1 - kLeastGain) return false;
    const Ratio ratio = measure::pairedRatio(racer.samples, byDefault->samples);
    const double margin = std::max(kLeastGain, kNoiseFactor * noiseOf(racer.samples, byDefault->samples));
    return 1 - ratio.value > margin && ratio.high < 1;
  };
  const Racer* leader = &*byDefault;
  for (const Racer& racer : racers) {
    const double lead = measure::medianRatio(racer.samples, leader->samples);
    if (lead < 1 || (lead == 1 && landscape.simpler(racer.point, leader->point))) leader = &racer;
  }
  Decision decision{byDefault->point,
                    true,
                    {1, 1, 1},
                    leader->point,
                    measure::pairedRatio(leader->samples, byDefault->samples)};
  const Racer* chosen = nullptr;
  for (const Racer& racer : racers) {
    if (!wins(racer)) continue;
    const Ratio behind = measure::pairedRatio(racer.samples, leader->samples);
    const bool equallyFast = &racer == leader || behind.value <= 1 + kEquallyFast ||
                             (behind.low <= 1 && behind.value <= 1 + kLeastGain);
    if (equallyFast && (!chosen || landscape.simpler(racer.point, chosen->point))) chosen = &racer;
  }
  if (chosen)
    decision = {chosen->point, false, measure::pairedRatio(chosen->samples, byDefault->samples),
                leader->point, decision.leaderRatio};
  return decision;
}

}  // namespace normc::tune
