#include "autotune/search/Replay.h"

#include <cassert>

#include "autotune/records/Standing.h"

namespace normc::tune {

namespace {
constexpr size_t kScreenRounds = 5;
}

Replay::Replay(const Landscape& landscape, std::map<size_t, Known> known, double making)
    : landscape_(landscape), known_(std::move(known)), making_(making) {
  assert(known_.contains(landscape_.byDefault()));
}

std::map<size_t, Replay::Known> Replay::known(const Landscape& landscape, const std::vector<Record>& records,
                                              const Task& task, const Device& device) {
  std::map<size_t, Known> known;
  std::map<size_t, const Record*> newest;
  for (const Record& record : records) {
    if (record.kind != "trial" || record.task != task || record.device != device) continue;
    if (record.status == Status::Ok && record.samples.empty()) continue;  // compiled, but never timed
    const auto point = landscape.find(record.generator, record.schedule);
    if (!point) continue;
    Known& one = known[*point];
    if (const Record*& last = newest[*point]; !last || newer(record, *last))
      last = &record, one.status = record.status, one.reason = record.reason;
    one.samples.insert(one.samples.end(), record.samples.begin(), record.samples.end());
    one.reference.insert(one.reference.end(), record.reference.begin(), record.reference.end());
  }
  return known;
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
    now_ += making_;
    Screened one{.point = point, .remembered = true};
    const auto at = known_.find(point);
    if (at == known_.end()) {
      one.status = Status::Refused, one.reason = "it is not in the records";
    } else if (at->second.status != Status::Ok) {
      one.status = at->second.status, one.reason = at->second.reason;
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
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < points.size(); ++i) samples[i].push_back(next(points[i]));
  return samples;
}

}  // namespace normc::tune
