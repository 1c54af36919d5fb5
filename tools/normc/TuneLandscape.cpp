#include "tools/normc/TuneLandscape.h"

#include <algorithm>

#include "autotune/candidates/Space.h"
#include "codegen/targets/halide/HalideTarget.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

/// Returns what `halide:resident,...` names: that generator and a schedule. A schedule alone is of the
/// generator of the defaults.
std::pair<codegen::TargetPtr, std::string> generatorOf(const std::string& given,
                                                       const tune::Hardware& hardware) {
  const size_t colon = given.find(':');
  for (const codegen::TargetPtr& target : hardware.generators)
    if (colon != std::string::npos && target->generator() == given.substr(0, colon))
      return {target, given.substr(colon + 1)};
  // No schedule has a colon, so a word before one is meant to be a generator.
  if (colon != std::string::npos) {
    if (given.starts_with("halide:"))  // it is not there: the error says why
      valueOf(codegen::halide::findTarget(hardware.generators[0]->spelling()), ExitCode::Refused);
    std::vector<std::string> names;
    for (const codegen::TargetPtr& target : hardware.generators) names.push_back(target->generator().str());
    wordOf("the generator of --schedule", given.substr(0, colon), names);
  }
  return {hardware.generators[0], given};
}

/// Returns the default, and the schedules of the command line: to look at one candidate, or to compare a few.
tune::Landscape onlyThese(const TuneTask& t, const tune::Hardware& hardware, const tune::Landscape& all,
                          const std::vector<std::string>& schedules, Illegal illegal) {
  std::vector<tune::Point> points{all[all.byDefault()]};
  for (const std::string& given : schedules) {
    const auto [generator, text] = generatorOf(given, hardware);
    const codegen::Target& target = *generator;
    const auto schedule = valueOf(target.bind(t.problem, text), ExitCode::Usage);
    const auto reason = schedule->whyIllegal();
    if (reason && illegal == Illegal::Refused)
      throw usage("the schedule does not fit " + t.problem.text() + " for " + target.name().str() + ": " +
                  *reason);
    const auto isSame = [&](const tune::Point& other) {
      return target.generator() == other.generator && schedule->text() == other.schedule;
    };
    if (std::ranges::any_of(points, isSame)) continue;
    // An illegal schedule has no estimate: it is kept so that its reason can be told.
    const double predicted = reason ? points[0].predicted : schedule->predict(hardware.workloadOf(t.task));
    points.push_back({target.generator().str(), schedule->text(), predicted, {0, int(points.size())}});
  }
  return tune::Landscape(std::move(points), 0);
}

}  // namespace

tune::Landscape landscapeOf(const TuneTask& t, const tune::Hardware& hardware, const TuneFlags& flags,
                            Illegal illegal) {
  tune::Landscape all = valueOf(
      tune::landscapeOf(hardware.generators, t.problem, hardware.workloadOf(t.task)), ExitCode::Usage);
  return flags.schedules.empty() ? std::move(all) : onlyThese(t, hardware, all, flags.schedules, illegal);
}

}  // namespace normc::cli
