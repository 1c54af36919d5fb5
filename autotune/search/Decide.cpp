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

bool clearlySlower(const Samples& theirs, const Samples& ours, size_t block) {
  for (size_t begin = 0; begin < theirs.size(); begin += block) {
    const size_t end = std::min(theirs.size(), begin + block);
    const auto part = [&](const Samples& all) {
      return Samples(all.begin() + long(begin), all.begin() + long(end));
    };
    if (measure::medianRatio(part(theirs), part(ours)) <= 1) return false;
  }
  const Samples medians = measure::bootstrappedRatios(theirs, ours);
  return medians[medians.size() / 200] > 1;
}

namespace {

/// Returns the least gain that a schedule needs.
double boundFor(size_t point, const Landscape& landscape, std::optional<size_t> incumbent) {
  if (!incumbent) return kLeastGain;
  if (point == *incumbent) return kLeastGain - kHysteresis;
  return *incumbent == landscape.byDefault() ? kLeastGain + kHysteresis : kLeastGain;
}

bool wins(const Samples& ours, const Samples& theirs, double bound) {
  if (measure::medianRatio(ours, theirs) > 1 - bound) return false;
  const Ratio ratio = measure::pairedRatio(ours, theirs);
  return 1 - ratio.value > std::max(bound, kNoiseFactor * noiseOf(ours, theirs)) && ratio.high < 1;
}

}  // namespace

Decision decide(const Landscape& landscape, const std::vector<Racer>& racers, std::optional<size_t> incumbent,
                double slack) {
  const auto byDefault = std::find_if(racers.begin(), racers.end(),
                                      [&](const Racer& r) { return r.point == landscape.byDefault(); });
  assert(byDefault != racers.end());
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
    if (racer.point == byDefault->point) continue;
    if (!wins(racer.samples, byDefault->samples, boundFor(racer.point, landscape, incumbent) - slack))
      continue;
    const Ratio behind = measure::pairedRatio(racer.samples, leader->samples);
    const bool equallyFast = &racer == leader || behind.value <= 1 + kEquallyFast ||
                             (behind.low <= 1 && behind.value <= 1 + kLeastGain);
    if (!equallyFast || (chosen && chosen->point == incumbent)) continue;
    if (!chosen || racer.point == incumbent || landscape.simpler(racer.point, chosen->point)) chosen = &racer;
  }
  if (chosen)
    decision = {chosen->point, false, measure::pairedRatio(chosen->samples, byDefault->samples),
                leader->point, decision.leaderRatio};
  return decision;
}

namespace {

/// The mean gain over processes, and its standard error.
struct MeanGain {
  double gain = 0, error = 0;
};

MeanGain foundBy(const Samples& each) {
  MeanGain found;
  double squares = 0;
  for (const double ratio : each) found.gain += (1 - ratio) / double(each.size());
  for (const double ratio : each) squares += (1 - ratio - found.gain) * (1 - ratio - found.gain);
  if (each.size() > 1) found.error = std::sqrt(squares / double(each.size() - 1) / double(each.size()));
  return found;
}

}  // namespace

Ratio meanRatio(const Samples& each) {
  const MeanGain found = foundBy(each);
  const double ratio = 1 - found.gain;
  return {ratio, ratio - 2 * found.error, ratio + 2 * found.error};
}

Decision confirmed(const Landscape& landscape, const Decision& won, const Samples& each,
                   std::optional<size_t> incumbent) {
  Decision decision = won;
  const MeanGain found = foundBy(each);
  if (each.size() > 1 &&
      found.gain > std::max(boundFor(won.chosen, landscape, incumbent), kDoubt * found.error)) {
    decision.ratio = meanRatio(each);
    return decision;
  }
  decision.chosen = landscape.byDefault();
  decision.tie = true;
  decision.ratio = {1, 1, 1};
  return decision;
}

bool undecided(const Landscape& landscape, const Decision& won, const Samples& each,
               std::optional<size_t> incumbent) {
  if (each.size() < 2) return false;
  const MeanGain found = foundBy(each);
  return std::fabs(found.gain - boundFor(won.chosen, landscape, incumbent)) <
         std::max(kLeastDoubt, kDoubt * found.error);
}

}  // namespace normc::tune
