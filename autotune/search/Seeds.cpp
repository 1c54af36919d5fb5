// The first candidates of a search: default, hints, the best predictions of different kinds, a few at random.
#include <algorithm>
#include <random>

#include "autotune/search/Search.h"

namespace normc::tune {
namespace {

/// Relative to the best prediction: up to kLikely another kind is likely to be as fast, up to kHopeful a
/// random point is worth its time.
constexpr double kLikely = 1.25;
constexpr int kOtherFamily = 2;  ///< words in which two kinds differ that count as different ideas
constexpr int kTries = 100;      ///< draws for a kind that is new, and as many for any

/// Returns the family distance of a point to the nearest of the list, at most kOtherFamily.
int familyDistanceToNearest(const Landscape& landscape, const std::vector<size_t>& list, size_t point) {
  int least = kOtherFamily;
  for (const size_t other : list) least = std::min(least, landscape.familyDistance(point, other));
  return least;
}

}  // namespace

std::vector<size_t> seedsOf(const Landscape& landscape, const SearchOptions& options) {
  std::vector<size_t> seeds{landscape.byDefault()};
  const auto add = [&](size_t point) {
    if (std::find(seeds.begin(), seeds.end(), point) != seeds.end()) return false;
    seeds.push_back(point);
    return true;
  };
  if (options.incumbent) add(*options.incumbent);
  for (const size_t hint : options.hints) add(hint);
  // First the best. Then, among likely kinds, each time the one that differs most from all that are taken.
  // Then the best of each other kind, then points that are not neighbours of one that is taken, then the
  // rest.
  std::vector<size_t> model;
  const auto take = [&](size_t point) {
    if (int(model.size()) < options.fromModel && add(point)) model.push_back(point);
  };
  const double best = landscape[landscape.ranked().front()].predicted;
  const std::vector<size_t> kinds = landscape.bestOfKinds();
  std::vector<size_t> likely;
  for (const size_t kind : kinds)
    if (landscape[kind].predicted <= kLikely * best) likely.push_back(kind);
  take(kinds.front());
  while (!likely.empty() && int(model.size()) < options.fromModel) {
    const auto next = std::max_element(likely.begin(), likely.end(), [&](size_t a, size_t b) {
      return familyDistanceToNearest(landscape, seeds, a) < familyDistanceToNearest(landscape, seeds, b);
    });
    take(*next);
    likely.erase(next);
  }
  for (const size_t kind : kinds) take(kind);
  for (const size_t point : landscape.ranked())
    if (std::all_of(model.begin(), model.end(),
                    [&](size_t other) { return landscape.knobDistance(point, other) > 1; }))
      take(point);
  for (const size_t point : landscape.ranked()) take(point);
  // At random among points that may be fast enough; only new kinds as long as such are drawn.
  const double limit = std::max(kHopeful * best, landscape[landscape.byDefault()].predicted);
  const auto hopeless = std::find_if(landscape.ranked().begin(), landscape.ranked().end(),
                                     [&](size_t point) { return landscape[point].predicted > limit; });
  const auto hopeful = size_t(hopeless - landscape.ranked().begin());
  std::mt19937_64 random(options.seed);
  for (int left = options.atRandom, tries = 0; left > 0 && tries < 2 * kTries; ++tries) {
    const size_t point = landscape.ranked()[random() % hopeful];
    if (tries < kTries && familyDistanceToNearest(landscape, seeds, point) == 0) continue;
    left -= add(point);
  }
  return seeds;
}

}  // namespace normc::tune
