// What a tuner knows of a target: which knobs its schedules have, which values are
// worth trying, and the facts that a prediction may use. Plain data: what is legal
// among it, and what it means, only the target can say (Target.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace normc::codegen {

/// Returns the strategy of a schedule's text, its first word.
inline std::string strategyOf(const std::string& schedule) { return schedule.substr(0, schedule.find(',')); }

/// One knob and its values, in an order in which neighbours are alike. `name=VALUE` in the text of
/// a schedule; with `flag` the word stands there (1) or does not (0).
struct KnobValues {
  std::string name;
  std::vector<int64_t> values;
  bool flag = false;
};

/// The schedules of one strategy: the product of its knobs, as far as BoundSchedule::whyIllegal allows. A
/// knob without influence on the problem or its call has the default as its only value.
struct KnobSpace {
  std::string strategy;
  std::vector<KnobValues> knobs;
};

/// The call that a prediction is for, and the machine that it runs on.
struct Workload {
  int64_t segments = 1, rows = 1, features = 1;
  int64_t threads = 1;
  int64_t ownCache = 1 << 20;      ///< bytes that one core has for itself
  int64_t sharedCache = 32 << 20;  ///< bytes of the largest cache
  int64_t totalRows() const { return segments * rows; }
};

}  // namespace normc::codegen
