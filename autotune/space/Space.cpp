#include "autotune/space/Space.h"

namespace normc::tune {
namespace {

/// Counts through the places of all knobs; false after the last.
bool advance(std::vector<int>& places, const codegen::KnobSpace& space) {
  for (size_t knob = space.knobs.size(); knob-- > 0;) {
    if (++places[knob] < int(space.knobs[knob].values.size())) return true;
    places[knob] = 0;
  }
  return false;
}

void addLegal(const codegen::Target& target, const Problem& problem, const codegen::Predictor& predict,
              int axis, const codegen::KnobSpace& space, std::vector<Point>& points) {
  std::vector<int> places(space.knobs.size());
  do {
    const std::string text = scheduleAt(space, places);
    if (target.whyIllegal(problem, text)) continue;
    Point point{target.generator().str(), llvm::cantFail(target.canonical(text)), predict(text), {axis}};
    point.at.insert(point.at.end(), places.begin(), places.end());
    point.family = target.family(problem, text);
    points.push_back(std::move(point));
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

std::string defaultFor(const codegen::Target& target, const Problem& problem, const codegen::Load& load) {
  const std::vector<codegen::Candidate> all = target.defaults(problem);
  const codegen::Candidate* best = nullptr;
  for (const codegen::Candidate& candidate : all)
    if (candidate.limits.serve(load.segments, load.rows) &&
        (!best || candidate.limits.widths() < best->limits.widths()))
      best = &candidate;
  return llvm::cantFail(target.canonical(best->schedule));
}

Result<Landscape> landscapeOf(const std::vector<codegen::TargetPtr>& generators, const Problem& problem,
                              const codegen::Load& load) {
  const codegen::Target& first = *generators.at(0);
  if (const auto reason = first.whyNot(problem))
    return Diagnostic{.message = problem.text() + " has no legal schedule for " + first.name().str() + ": " +
                                 *reason};
  std::vector<Point> points;
  int axis = 0;
  for (const codegen::TargetPtr& target : generators) {
    const codegen::Predictor predict = target->predictor(problem, load);
    for (const codegen::KnobSpace& space : target->knobs(problem, load))
      addLegal(*target, problem, predict, axis++, space, points);
  }

  const std::string byDefault = defaultFor(first, problem, load);
  for (size_t i = 0; i < points.size(); ++i)
    if (points[i].schedule == byDefault && points[i].generator == first.generator())
      return Landscape(std::move(points), i);
  points.push_back({first.generator().str(), byDefault, first.predict(problem, byDefault, load), {axis}, first.family(problem, byDefault)});
  const size_t last = points.size() - 1;
  return Landscape(std::move(points), last);
}

}  // namespace normc::tune
