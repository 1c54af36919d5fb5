// Made-up landscapes with known times, and a search of them by a clock that only counts.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "autotune/search/Search.h"
#include "tests/autotune/Replay.h"

namespace normc::tune {

/// Points of a grid of sides x sides; the default is the first. `seconds` gives their true times, which the
/// model knows up to `blindness`.
struct World {
  Landscape landscape;
  std::map<size_t, Replay::Known> known;
  std::vector<double> truth;
};

inline World worldOf(int side, const std::function<double(int, int)>& seconds, double noise, uint64_t seed,
                     double blindness = 0.2) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Point> points;
  std::vector<double> truth;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      truth.push_back(seconds(i, j));
      points.push_back({"mlir",
                        "i=" + std::to_string(i) + ",j=" + std::to_string(j),
                        truth.back() * std::exp(blindness * normal(random)),
                        {0, i, j}});
    }
  World world{Landscape(std::move(points), 0), {}, truth};
  for (size_t i = 0; i < truth.size(); ++i) {
    Replay::Known& one = world.known[i];
    for (int sample = 0; sample < 97; ++sample) {
      const double drift = std::exp(0.2 * normal(random));  // meets both
      one.samples.push_back(truth[i] * drift * std::exp(noise * normal(random)));
      one.reference.push_back(truth[0] * drift * std::exp(noise * normal(random)));
    }
  }
  world.known[0].reference = world.known[0].samples;
  return world;
}

inline double bowl(int i, int j) { return 1e-3 * (1 + 0.03 * ((i - 5) * (i - 5) + (j - 3) * (j - 3))); }

inline Outcome searchIn(const World& world, SearchOptions options = {}, double making = 0.1) {
  Replay lab(world.landscape, world.known, making);
  return search(world.landscape, lab, options);
}

}  // namespace normc::tune
