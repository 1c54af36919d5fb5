// The facts about a target for a tuner: the knobs of its schedules, the values worth trying, and the
// machine's facts for a prediction. Plain data: legality and meaning are defined by the target (Target.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace normc::codegen {

/// Returns the strategy of a schedule's text, its first word.
inline std::string strategyOf(const std::string& schedule) { return schedule.substr(0, schedule.find(',')); }

/// One knob and its values, ordered so that neighbours are similar. The text of a schedule has `name=VALUE`;
/// if `flag`, it has the word (1) or not (0).
struct KnobValues {
  std::string name;
  std::vector<int64_t> values;
  bool flag = false;
};

/// The schedules of one strategy: the product of its knobs, restricted by BoundSchedule::whyIllegal. A knob
/// without effect on the problem or its call has the default as its only value.
struct KnobSpace {
  std::string strategy;
  std::vector<KnobValues> knobs;
};

/// The call of a prediction, and the machine.
struct Workload {
  int64_t segments = 1, rows = 1, features = 1;
  int64_t threads = 1;
  int64_t ownCache = 1 << 20;      ///< bytes of the private cache of one core
  int64_t sharedCache = 32 << 20;  ///< bytes of the largest cache
  int64_t totalRows() const { return segments * rows; }
};

}  // namespace normc::codegen
