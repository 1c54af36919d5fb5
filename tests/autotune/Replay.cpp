#include "tests/autotune/Replay.h"

#include <cassert>

namespace normc::tune {

namespace {
constexpr size_t kScreenRounds = 5;
}

Replay::Replay(const Landscape& landscape, std::map<size_t, Known> known, double making)
    : landscape_(landscape), known_(std::move(known)), making_(making) {
  assert(known_.contains(landscape_.byDefault()));
}

/// Returns the next recorded time, relative to the default of its round and multiplied by the default's
/// median: two sessions were not equally fast.
double Replay::next(size_t point) {
  const Known& one = known_.at(point);
  const size_t at = taken_[point]++ % one.samples.size();
  const double byDefault = measure::median(known_.at(landscape_.byDefault()).samples);
  const double seconds =
      one.reference.empty() ? one.samples[at] : one.samples[at] / one.reference[at] * byDefault;
  now_ += seconds;
  return seconds;
}

std::vector<Screened> Replay::screen(const std::vector<size_t>& points) {
  std::vector<Screened> results;
  for (const size_t point : points) {
    if (!results.empty() && now_ >= end_) break;
    now_ += making_;
    Screened one{.point = point, .remembered = true};
    const auto at = known_.find(point);
    if (at == known_.end()) {
      one.status = Status::Refused;
      one.reason = "it is not in the records";
    } else if (at->second.status != Status::Ok) {
      one.status = at->second.status;
      one.reason = at->second.reason;
    } else {
      for (size_t round = 0; round < kScreenRounds; ++round) {
        one.samples.push_back(next(point));
        one.reference.push_back(next(landscape_.byDefault()));
      }
    }
    results.push_back(std::move(one));
  }
  return results;
}

std::vector<Samples> Replay::race(const std::vector<size_t>& points, int rounds) {
  std::vector<Samples> samples(points.size());
  for (int round = 0; round < rounds; ++round) {
    const double begin = now_;
    for (size_t i = 0; i < points.size(); ++i) samples[i].push_back(next(points[i]));
    if (2 * now_ - begin > end_) break;
  }
  return samples;
}

}  // namespace normc::tune
