#include "autotune/tune/Hints.h"

#include <algorithm>

#include "autotune/tune/Choose.h"

namespace normc::tune {

static constexpr size_t kHints = 6;

void addHints(const Landscape& landscape, const std::vector<Record>& records, const Setting& setting,
              SearchOptions& options) {
  const std::string head = setting.task.problem.head();
  const Earlier earlier = choiceOf(landscape, records, setting);
  if (earlier.choice) options.incumbent = earlier.point;
  options.absentWin = earlier.absentWin;
  std::map<size_t, double> far;  // distance of each such point's nearest task
  for (const Record& record : records) {
    if (record.kind != RecordKind::Choice || record.task.problem.head() != head) continue;
    const auto point = landscape.find(record.generator, record.schedule);
    if (!point || point == options.incumbent) continue;
    const double distance =
        octaves(record.task.features, setting.task.features) + octaves(record.task.rows, setting.task.rows);
    const auto [at, isNew] = far.emplace(*point, distance);
    at->second = std::min(at->second, distance);
  }
  std::vector<std::pair<double, size_t>> nearest;
  for (const auto& [point, distance] : far) nearest.emplace_back(distance, point);
  std::sort(nearest.begin(), nearest.end());
  for (const auto& [distance, point] : nearest)
    if (options.hints.size() < kHints) options.hints.push_back(point);
}

}  // namespace normc::tune
