#include "autotune/candidates/Space.h"

namespace normc::tune {
namespace {

/// Advances to the next combination of knob values. False after the last.
bool advance(std::vector<int>& places, const codegen::KnobSpace& space) {
  for (size_t knob = space.knobs.size(); knob-- > 0;) {
    if (++places[knob] < int(space.knobs[knob].values.size())) return true;
    places[knob] = 0;
  }
  return false;
}

Point pointOf(const codegen::Target& target, const codegen::BoundSchedule& schedule,
              const codegen::Workload& workload, std::vector<int> at) {
  return {target.generator().str(), schedule.text(), schedule.predict(workload), std::move(at),
          schedule.family()};
}

void addLegal(const codegen::Target& target, codegen::BoundTarget& bound, const codegen::Workload& workload,
              int axis, const codegen::KnobSpace& space, std::vector<Point>& points) {
  std::vector<int> places(space.knobs.size());
  do {
    const auto schedule = llvm::cantFail(bound.parse(scheduleAt(space, places)));
    if (schedule->whyIllegal()) continue;
    std::vector<int> at{axis};
    at.insert(at.end(), places.begin(), places.end());
    points.push_back(pointOf(target, *schedule, workload, std::move(at)));
  } while (advance(places, space));
}

}  // namespace

std::string scheduleAt(const codegen::KnobSpace& space, const std::vector<int>& places) {
  std::string text = space.strategy;
  text.reserve(256);
  for (size_t i = 0; i < space.knobs.size(); ++i) {
    const codegen::KnobValues& knob = space.knobs[i];
    const int64_t value = knob.values[size_t(places[i])];
    if (knob.flag && !value) continue;
    text.append(",").append(knob.name);
    if (!knob.flag) text.append("=").append(std::to_string(value));
  }
  return text;
}

std::string defaultFor(codegen::BoundTarget& target, const codegen::Workload& workload) {
  const std::vector<codegen::Candidate> all = target.defaults();
  const codegen::Candidate* best = nullptr;
  for (const codegen::Candidate& candidate : all)
    if (candidate.limits.serve(workload.segments, workload.rows) &&
        (!best || candidate.limits.widths() < best->limits.widths()))
      best = &candidate;
  return best->schedule;
}

Result<Landscape> landscapeOf(const std::vector<codegen::TargetPtr>& generators, const Problem& problem,
                              const codegen::Workload& workload) {
  const codegen::Target& first = *generators.at(0);
  if (isOverRanks(problem.entry))
    return Diagnostic{.message = problem.text() + " cannot be tuned: its sums come from several calls",
                      .hint = "kernels of entries over ranks have their default schedules"};
  const auto boundFirst = first.bind(problem);
  if (const auto reason = boundFirst->whyIllegal())
    return Diagnostic{.message = problem.text() + " has no legal schedule for " + first.name().str() + ": " +
                                 *reason};
  std::vector<Point> points;
  int axis = 0;
  for (const codegen::TargetPtr& target : generators) {
    const auto bound = target.get() == &first ? boundFirst : target->bind(problem);
    for (const codegen::KnobSpace& space : bound->knobs(workload))
      addLegal(*target, *bound, workload, axis++, space, points);
  }

  const std::string byDefault = defaultFor(*boundFirst, workload);
  for (size_t i = 0; i < points.size(); ++i)
    if (points[i].schedule == byDefault && points[i].generator == first.generator())
      return Landscape(std::move(points), i);
  points.push_back(pointOf(first, *llvm::cantFail(boundFirst->parse(byDefault)), workload, {axis}));
  const size_t last = points.size() - 1;
  return Landscape(std::move(points), last);
}

}  // namespace normc::tune
