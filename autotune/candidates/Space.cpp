#include "autotune/candidates/Space.h"

namespace normc::tune {
namespace {

Point pointOf(const codegen::Target& target, const codegen::BoundSchedule& schedule,
              const codegen::Workload& workload, std::vector<int> at) {
  return {target.generator().str(), schedule.text(), schedule.predict(workload), std::move(at),
          schedule.family()};
}

}  // namespace

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
    for (const codegen::KnobSpace& space : bound->knobs(workload)) {
      bound->forEachLegal(space, [&](const codegen::BoundSchedule& schedule, llvm::ArrayRef<int> places) {
        std::vector<int> at{axis};
        at.insert(at.end(), places.begin(), places.end());
        points.push_back(pointOf(*target, schedule, workload, std::move(at)));
      });
      ++axis;
    }
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
