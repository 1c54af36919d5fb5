// The search space of the CPU target: the values of each knob that tuning tries, and the model that ranks
// schedules.
#pragma once

#include <map>
#include <vector>

#include "codegen/Tuning.h"
#include "codegen/plan/Planner.h"
#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

/// Returns a space for each legal strategy. A knob without effect on the slabs of the problem keeps its
/// default.
std::vector<KnobSpace> knobSpaces(const Problem&, const Isa&, const Workload&);

/// Predicts the time of a call for the schedules of one problem. Plans a strategy when its first schedule is
/// predicted, and keeps what the plan says. For one thread at a time.
class Predictor {
 public:
  Predictor(Problem problem, Isa isa) : problem_(std::move(problem)), isa_(std::move(isa)) {}

  /// Returns nanoseconds, roughly: what memory moves against what the core computes, the larger of them, plus
  /// tasks. The coefficients are those of a common server core; they order schedules and claim no more.
  double operator()(const Schedule&, const Workload&);
  /// Returns the transfers that predictions for a strategy count.
  const TrafficBounds& traffic(Strategy strategy) { return factsOf(strategy).traffic; }

 private:
  /// Facts that all schedules of a strategy share.
  struct Facts {
    Schedule byDefault;
    TrafficBounds traffic;
  };
  const Facts& factsOf(Strategy);

  Problem problem_;
  Isa isa_;
  std::map<Strategy, Facts> facts_;
};

}  // namespace normc::codegen::cpu
