#include "codegen/targets/cuda/Schedule.h"

#include "codegen/targets/Knobs.h"

namespace normc::codegen::cuda {

Prefetch Prefetch::fromKnob(int64_t knob) {
  if (knob < 1) return {None, knob};
  if (knob == 1) return {Registers, 1};
  return knob <= kMostAhead + 1 ? Prefetch{Async, knob - 1} : Prefetch{Bulk, knob - (kMostAhead + 1)};
}
int64_t Prefetch::knob() const {
  return kind == Async ? depth + 1 : kind == Bulk ? depth + kMostAhead + 1 : depth;
}

/// `prefetch`: the knob, which is no number of the schedule.
static llvm::SmallVector<Knob> knobsOf(Schedule& s, int64_t& prefetch) {
  return {{"threads", &s.threads}, {"team", &s.team},     {"vector", &s.vector}, {"tile", &s.tile},
          {"rows", &s.rows},       {"chunks", &s.chunks}, {"blocks", &s.blocks}, {"prefetch", &prefetch},
          {"cluster", &s.cluster}, {"hints", &s.hints},   {"hold", &s.hold},     {"grid", &s.grid},
          {"shared", &s.shared}};
}

std::string Schedule::text() const {
  Schedule copy = *this;
  int64_t knob = prefetch.knob();
  return scheduleText(strategy, knobsOf(copy, knob));
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  int64_t prefetch = 0;
  if (auto error = parseScheduleText(text, schedule.strategy, kStrategies, knobsOf(schedule, prefetch)))
    return error;
  schedule.prefetch = Prefetch::fromKnob(prefetch);
  return schedule;
}

void setKnob(Schedule& s, llvm::StringRef name, int64_t value) {
  int64_t prefetch = s.prefetch.knob();
  codegen::setKnob(knobsOf(s, prefetch), name, value);
  s.prefetch = Prefetch::fromKnob(prefetch);
}

}  // namespace normc::codegen::cuda
