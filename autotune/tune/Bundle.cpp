#include "autotune/tune/Bundle.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "autotune/measure/Machine.h"
#include "autotune/records/Database.h"
#include "autotune/tune/Object.h"
#include "autotune/tune/Remembered.h"
#include "autotune/tune/ThisDevice.h"
#include "dsl/Nearest.h"

namespace normc::tune {

namespace fs = std::filesystem;

namespace {

constexpr size_t kDefault = 0;  ///< the point of the default among those of Shipped

/// Returns the setting for this machine. The work on the task begins now.
Setting here(const Shipped& shipped, const BundleRun& run, const std::string& session, double budget) {
  Setting setting = shipped.setting;
  setting.begun = measure::secondsNow();
  setting.session = session;
  setting.quietPatience = kQuietShare * budget;
  setting.quietShare = kQuietShare;
  if (setting.device.kind == "cuda") {
    // The architecture of the code; it may be older than that of the device.
    const std::string arch = setting.device.arch;
    setting.device = thisCudaDevice(run.deviceIndex, run.cudaLibrary);
    setting.device.arch = arch;
    setting.deviceIndex = run.deviceIndex;
    setting.cudaLibrary = run.cudaLibrary;
    setting.task.threads = 1;
    setting.sampleSeconds = kCudaSampleSeconds;
    return setting;
  }
  setting.device = thisProcessor(shipped.setting.device.arch);
  setting.task.threads = measure::thisMachine().threadsFor(setting.task.threads);
  setting.screenRows = screeningRows(setting.task, setting.spec, measure::thisMachine().lastCache);
  return setting;
}

/// Returns the file of results. Records that were appended to a file of the bundle would destroy it.
std::string recordsOf(const BundleRun& run, const std::vector<Shipped>& tasks) {
  std::error_code none;
  const auto refuseSame = [&](const std::string& file) {
    if (fs::equivalent(run.records, run.folder + "/" + file, none))
      throw std::runtime_error("the records " + run.records + " are the file " + file +
                               " of the bundle; name another file");
  };
  refuseSame(kPlanFile);
  for (const Shipped& task : tasks)
    for (const BuiltCandidate& candidate : task.made) refuseSame(candidate.package);
  return run.records;
}

/// Returns the path of the package of a candidate.
std::string pathOf(const BundleRun& run, const Shipped& shipped, size_t point) {
  return run.folder + "/" + shipped.made[point].package;
}

bool isReadable(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

/// Fails if the file is not the package that the plan names: its times would be recorded for another
/// schedule.
void requireOwnPackage(const BundleRun& run, const Shipped& shipped, size_t candidate) {
  const Point& point = shipped.points[candidate];
  const std::string path = pathOf(run, shipped, candidate);
  const auto damaged = [&](const std::string& what) {
    return BundleError(BundleError::Damaged, path + " " + what + "; export the bundle again");
  };
  std::error_code none;
  const fs::path inside = fs::canonical(path, none).lexically_relative(fs::canonical(run.folder, none));
  if (inside.empty() || *inside.begin() == "..") throw damaged("is a link to a file outside of the bundle");
  const PackedKernel packed = packedKernelOf(path);
  if (packed.object != shipped.made[candidate].object)
    throw damaged("is not the package that plan.json names");
  if (packed.generator != point.generator || packed.schedule != point.schedule)
    throw damaged("is of the schedule " + packed.generator + ":" + packed.schedule + ", and plan.json says " +
                  point.generator + ":" + point.schedule);
}

/// Returns a candidate as the lab takes it, with the path of its package.
BuiltCandidate candidateOf(const BundleRun& run, const Shipped& shipped, size_t point) {
  BuiltCandidate made = shipped.made[point];
  made.package = pathOf(run, shipped, point);
  if (isReadable(made.package)) {
    requireOwnPackage(run, shipped, point);
  } else {
    made.failure = "cannot read " + made.package;
    made.unavailable = true;
  }
  return made;
}

/// Makes the choice of the records the result of a task.
void takeRecorded(const Record& choice, const std::string& package, Found& found) {
  found.package = package;
  found.schedule = choice.schedule;
  found.conclusion = *choice.conclusion;
  found.defaultSeconds = measure::median(choice.reference);
  found.remembered = true;
}

/// Makes the outcome of a search the result of a task.
void takeOutcome(const Outcome& outcome, const Earlier& earlier, const BundleRun& run, const Shipped& shipped,
                 Found& found) {
  found.candidates = outcome.screened.size();
  for (const Screened& one : outcome.screened) found.rejected += one.status != Status::Ok;
  if (!outcome.interrupted) found.failure = outcome.failure;  // interrupted: the default did not fail
  found.complete = outcome.complete;
  found.decided = outcome.decided;
  if (!outcome.complete) return;
  // What is not decided leaves an earlier choice as it was, if that could be raced.
  const bool stays = earlier.choice && !outcome.decided &&
                     std::ranges::count(outcome.racers, earlier.point, &Racer::point) > 0;
  const size_t answer = stays ? earlier.point : outcome.decision.chosen;
  found.package = pathOf(run, shipped, answer);
  found.schedule = shipped.points[answer].schedule;
  found.conclusion = stays ? *earlier.choice->conclusion : conclusionOf(outcome.decision);
  for (const Racer& racer : outcome.racers)
    if (racer.point == kDefault) found.defaultSeconds = measure::median(racer.samples);
}

}  // namespace

OpenBundle::OpenBundle(const BundleRun& run)
    : run_(run), tasks_(readPlan(run.folder)), journal_(recordsOf(run, tasks_)), session_(newSession()) {}

Found OpenBundle::tune(const Shipped& shipped, double budget) {
  Setting setting = here(shipped, run_, session_, budget);
  const Landscape landscape(shipped.points, kDefault);
  const auto known = readDatabase(run_.records);
  if (!known) throw std::runtime_error(known.errors()[0].message);
  const Earlier earlier = choiceOf(landscape, known->records, setting);
  Found found{.task = setting.task};
  // A choice without its package is no answer; the packages that exist are measured.
  if (earlier.choice && !run_.fresh && isReadable(pathOf(run_, shipped, earlier.point))) {
    requireOwnPackage(run_, shipped, earlier.point);
    takeRecorded(*earlier.choice, pathOf(run_, shipped, earlier.point), found);
    return found;
  }
  if (setting.device.kind == "cpu")
    found.failure = whyOutOfMemory(setting.task, setting.spec, measure::thisMachine().memory);
  if (!found.failure.empty()) return found;
  setting.stamp = newStamp(known->records);
  const LiveLab::Callbacks callbacks{.make = [&](size_t point) { return candidateOf(run_, shipped, point); },
                                     .stop = run_.stop,
                                     .worker = run_.worker,
                                     .journal = &journal_};
  LiveLab lab(landscape, setting, callbacks,
              run_.fresh ? std::map<size_t, Screened>{} : rememberedFrom(landscape, known->records, setting));
  SearchOptions options;
  options.budget = budget;
  options.progress = run_.progress;
  if (earlier.choice) options.incumbent = earlier.point;
  options.absentWin = earlier.absentWin;
  const Outcome outcome = search(landscape, lab, options);
  if (outcome.complete && outcome.decided) lab.conclude(outcome);
  takeOutcome(outcome, earlier, run_, shipped, found);
  return found;
}

namespace {

std::string lineOn(const Found& found) {
  if (!found.decided)
    return found.task.text() + ": not decided after " + counted(int64_t(found.candidates), "candidate");
  char gain[64] = "the default stays";
  if (found.conclusion.verdict != Verdict::Tie)
    std::snprintf(gain, sizeof gain, "%.2fx the default", 1 / found.conclusion.ratio);
  return found.task.text() + ": " +
         (found.remembered ? "known from its records" : std::to_string(found.candidates) + " candidates") +
         ", " + gain + ", " + found.schedule;
}

}  // namespace

BundleEnd runBundle(const BundleRun& run) {
  OpenBundle bundle(run);
  const double begin = run.clock();
  BundleEnd end = BundleEnd::Whole;
  size_t left = bundle.tasks().size();
  for (const Shipped& shipped : bundle.tasks()) {
    if (run.stop()) return BundleEnd::Stopped;
    const double rest = run.seconds - (run.clock() - begin);
    if (run.seconds > 0 && rest <= 0) return BundleEnd::OutOfTime;
    const double share = run.seconds > 0 ? rest / double(left) : run.budget;
    --left;
    const Found found = bundle.tune(shipped, std::min(run.budget, share));
    if (!found.failure.empty()) {
      end = BundleEnd::Failed;
      run.say(found.task.text() + ": the default could not be measured: " + found.failure);
    } else if (found.complete)
      run.say(lineOn(found));
  }
  return run.stop() ? BundleEnd::Stopped : end;
}

}  // namespace normc::tune
