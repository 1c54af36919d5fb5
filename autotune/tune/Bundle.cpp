#include "autotune/tune/Bundle.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "autotune/measure/Machine.h"
#include "autotune/measure/Policy.h"
#include "autotune/records/ParseJson.h"
#include "autotune/tune/Object.h"
#include "autotune/tune/ThisDevice.h"
#include "autotune/worker/TaskProblem.h"
#include "dsl/Nearest.h"

namespace normc::tune {

namespace fs = std::filesystem;

namespace {

constexpr int kPlanSchema = 1;
/// The most axes of a grid of schedules, and the last step along each. A search looks at every place beside a
/// point.
constexpr size_t kMostAxes = 32;
constexpr int kMostSteps = 255;
/// Texts of a toolchain are short, so that a record holds all of them.
constexpr size_t kMostToolText = 1 << 10;

Json toJson(const Shipped& s) {
  const Task& t = s.setting.task;
  Json points = Json::array();
  for (size_t i = 0; i < s.points.size(); ++i)
    points.push_back({{"generator", s.points[i].generator},
                      {"schedule", s.points[i].schedule},
                      {"predicted", s.points[i].predicted},
                      {"at", s.points[i].at},
                      {"family", s.points[i].family},
                      {"package", s.made[i].package},
                      {"object", s.made[i].object}});
  return {{"problem", t.problem.text()},
          {"norm", t.norm},
          {"segments", t.segments},
          {"rows", t.rows},
          {"features", t.features},
          {"threads", t.threads},
          {"policy", t.policy},
          {"spec", s.setting.spec},
          {"toolchain", s.setting.toolchain},
          {"device", s.setting.device.kind},
          {"arch", s.setting.device.arch},
          {"candidates", points}};
}

/// A value that is illegal in a plan; its message continues "task 1: ".
struct BadValue {
  std::string text;
};

int64_t wholeOf(const Json& json, const char* key, int64_t least, int64_t most) {
  const Json& value = json.at(key);
  if (!value.is_number_integer() || value < least || value > most)
    throw BadValue{std::string(key) + " is " + value.dump() + "; it must be a whole number from " +
                   std::to_string(least) + " to " + std::to_string(most)};
  return value;
}

/// Returns a text that records hold too. Measurements of a longer one would be lost.
std::string textOf(const Json& json, const char* key, size_t most = kMostText) {
  std::string text = json.at(key);
  if (text.size() > most)
    throw BadValue{std::string(key) + " has " + std::to_string(text.size()) +
                   " bytes; it must have at most " + std::to_string(most)};
  return text;
}

std::map<std::string, std::string> toolchainOf(const Json& json) {
  std::map<std::string, std::string> toolchain;
  const Json& tools = json.at("toolchain");
  if (tools.size() > kMostEntries)
    throw BadValue{"toolchain has " + std::to_string(tools.size()) + " entries; it must have at most " +
                   std::to_string(kMostEntries)};
  for (const auto& [tool, version] : tools.get<Json::object_t>()) {
    if (tool.size() > kMostToolText)
      throw BadValue{"toolchain has a name of " + std::to_string(tool.size()) +
                     " bytes; it must have at most " + std::to_string(kMostToolText)};
    toolchain[tool] = textOf(tools, tool.c_str(), kMostToolText);
  }
  return toolchain;
}

ProblemText problemOf(const Json& json) {
  std::string why;
  std::optional<ProblemText> problem = parseProblemText(textOf(json, "problem"), &why);
  if (!problem) throw BadValue{why};
  return *std::move(problem);
}

Task taskOf(const Json& json) {
  Task task{problemOf(json),
            textOf(json, "norm"),
            wholeOf(json, "segments", 1, kMostElements),
            wholeOf(json, "rows", 1, kMostElements),
            wholeOf(json, "features", 1, kMostElements),
            wholeOf(json, "threads", 0, kMostThreads),
            json.at("policy")};
  if (const std::string why = whyTooLarge(task); !why.empty()) throw BadValue{why};
  if (!measure::findPolicy(task.policy))
    throw BadValue{"policy is " + task.policy + "; it must be " + measure::policyNames()};
  return task;
}

/// Returns a point of the grid of schedules: axes, and steps along each.
std::vector<int> placeOf(const Json& json) {
  const auto at = json.get<std::vector<int64_t>>();
  if (at.empty() || at.size() > kMostAxes ||
      std::any_of(at.begin(), at.end(), [](int64_t step) { return step < 0 || step > kMostSteps; }))
    throw BadValue{"at is " + json.dump() + "; it must be 1 to " + std::to_string(kMostAxes) +
                   " whole numbers from 0 to " + std::to_string(kMostSteps)};
  return {at.begin(), at.end()};
}

/// Returns the path of a package, which stays in the folder of the plan.
std::string packageOf(const Json& json) {
  const std::string text = json.at("package");
  const fs::path path = text;
  if (text.empty() || path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end())
    throw BadValue{"package is " + json.at("package").dump() +
                   "; it must be the path of a file in the folder"};
  return text;
}

Shipped fromJson(const Json& json) {
  Shipped s;
  s.setting.task = taskOf(json);
  s.setting.spec = json.at("spec");
  s.setting.toolchain = toolchainOf(json);
  const std::string kind = textOf(json, "device");
  if (kind != "cpu" && kind != "cuda") throw BadValue{"device is " + kind + "; it must be cpu or cuda"};
  s.setting.device.kind = kind, s.setting.device.arch = textOf(json, "arch");
  if (const auto problem = problemOfTask(s.setting.spec, s.setting.task.problem.text());
      problem && problem->spec->structuralHash() != s.setting.task.norm)
    throw BadValue{"norm is " + s.setting.task.norm + ", and the hash of its text is " +
                   problem->spec->structuralHash()};
  for (const Json& point : json.at("candidates")) {
    s.points.push_back({textOf(point, "generator"), textOf(point, "schedule"), point.at("predicted"),
                        placeOf(point.at("at")), point.value("family", "")});
    s.made.push_back({packageOf(point), textOf(point, "object"), ""});
  }
  if (s.points.empty()) throw std::runtime_error("a task has no candidates");
  for (size_t i = 0; i < s.points.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (s.points[i].generator == s.points[k].generator && s.points[i].schedule == s.points[k].schedule)
        throw BadValue{"the schedule " + s.points[i].schedule + " is there twice"};
  return s;
}

/// Returns the setting for this machine, which measures the task.
Setting here(const Shipped& shipped, const BundleRun& run, const std::string& session) {
  Setting setting = shipped.setting;
  setting.session = session;
  if (setting.device.kind == "cuda") {
    // The architecture of the code; it may be older than that of the device.
    const std::string arch = setting.device.arch;
    setting.device = thisCudaDevice(run.deviceIndex, run.cudaLibrary);
    setting.device.arch = arch;
    setting.deviceIndex = run.deviceIndex, setting.cudaLibrary = run.cudaLibrary;
    setting.task.threads = 1;
    setting.sampleSeconds = kCudaSampleSeconds;
    return setting;
  }
  setting.device = thisProcessor(shipped.setting.device.arch);
  setting.task.threads = measure::thisMachine().threadsFor(setting.task.threads);
  return setting;
}

}  // namespace

std::string planText(const std::vector<Shipped>& tasks) {
  Json all = Json::array();
  for (const Shipped& task : tasks) all.push_back(toJson(task));
  return Json{{"schema", kPlanSchema}, {"tasks", all}}.dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::vector<Shipped> readPlan(const std::string& folder) {
  const std::string path = folder + "/" + kPlanFile;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw BundleError(BundleError::Missing,
                      "cannot read " + path + "; a bundle is a folder that 'normc tune export' made");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = parseJson(text);
  const auto damaged = [&](const std::string& what) {
    return BundleError(BundleError::Damaged, path + " is damaged: " + what + "; export the bundle again");
  };
  if (!json.is_object()) throw damaged("it is no JSON object");
  if (json.contains("schema") && json["schema"] != kPlanSchema)
    throw BundleError(BundleError::Foreign,
                      path + " is not a plan of this version of normc; export the bundle again");
  if (!json.contains("schema") || !json.contains("tasks") || !json["tasks"].is_array())
    throw damaged("it has no schema, or no list of tasks");
  if (json["tasks"].empty()) throw damaged("it has no tasks");
  std::vector<Shipped> tasks;
  for (const Json& task : json["tasks"]) {
    try {
      tasks.push_back(fromJson(task));
    } catch (const BadValue& flaw) {
      throw damaged("task " + std::to_string(tasks.size() + 1) + ": " + flaw.text);
    } catch (
        const std::exception&) {  // the parser's message about a key is of no use to the user of a bundle
      throw damaged("task " + std::to_string(tasks.size() + 1) +
                    " is not one that 'normc tune export' writes");
    }
  }
  return tasks;
}

namespace {

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

/// Fails if the file is not the package that the plan names: its times would be recorded for another
/// schedule.
void requireOwnPackage(const std::string& folder, const BuiltCandidate& candidate, const Point& point,
                       const std::string& path) {
  const auto damaged = [&](const std::string& what) {
    return BundleError(BundleError::Damaged, path + " " + what + "; export the bundle again");
  };
  std::error_code none;
  const fs::path inside = fs::canonical(path, none).lexically_relative(fs::canonical(folder, none));
  if (inside.empty() || *inside.begin() == "..") throw damaged("is a link to a file outside of the bundle");
  const PackedKernel packed = packedKernelOf(path);
  if (packed.object != candidate.object) throw damaged("is not the package that plan.json names");
  if (packed.generator != point.generator || packed.schedule != point.schedule)
    throw damaged("is of the schedule " + packed.generator + ":" + packed.schedule + ", and plan.json says " +
                  point.generator + ":" + point.schedule);
}

}  // namespace

OpenBundle::OpenBundle(const BundleRun& run)
    : run_(run), tasks_(readPlan(run.folder)), journal_(recordsOf(run, tasks_)), session_(newSession()) {}

Found OpenBundle::tune(const Shipped& shipped, double budget) {
  const double begun = measure::secondsNow();
  Setting setting = here(shipped, run_, session_);
  setting.begun = begun, setting.quietPatience = kQuietShare * budget;
  setting.quietShare = kQuietShare;
  if (setting.device.kind == "cpu")
    setting.screenRows = screeningRows(setting.task, setting.spec, measure::thisMachine().lastCache);
  const Landscape landscape(shipped.points, 0);
  const auto pathOf = [&](size_t point) { return run_.folder + "/" + shipped.made[point].package; };
  const auto known = readDatabase(run_.records);
  if (!known) throw std::runtime_error(known.errors()[0].message);
  Found found{.task = setting.task};
  const auto [choice, chosen, absentWin] = choiceOf(landscape, known->records, setting);
  // A choice without its package is no answer; the packages that exist are measured.
  if (choice && !run_.fresh && access(pathOf(chosen).c_str(), R_OK) == 0) {
    requireOwnPackage(run_.folder, shipped.made[chosen], shipped.points[chosen], pathOf(chosen));
    found.package = pathOf(chosen), found.schedule = choice->schedule, found.conclusion = *choice->conclusion;
    found.defaultSeconds = measure::median(choice->reference), found.remembered = true;
    return found;
  }
  if (setting.device.kind == "cpu")
    found.failure = whyOutOfMemory(setting.task, setting.spec, measure::thisMachine().memory);
  if (!found.failure.empty()) return found;
  setting.stamp = newStamp(known->records);
  LiveLab::Callbacks callbacks;
  callbacks.make = [&](size_t point) {
    BuiltCandidate made = shipped.made[point];
    made.package = pathOf(point);
    if (access(made.package.c_str(), R_OK) != 0)
      made.failure = "cannot read " + made.package, made.unavailable = true;
    else
      requireOwnPackage(run_.folder, shipped.made[point], shipped.points[point], made.package);
    return made;
  };
  callbacks.stop = run_.stop, callbacks.worker = run_.worker, callbacks.journal = &journal_;
  LiveLab lab(landscape, setting, callbacks,
              run_.fresh ? std::map<size_t, Screened>{} : rememberedFrom(landscape, known->records, setting));
  SearchOptions options;
  options.budget = budget, options.progress = run_.progress;
  if (choice) options.incumbent = chosen;
  options.absentWin = absentWin;
  const Outcome outcome = search(landscape, lab, options);
  found.candidates = outcome.screened.size();
  for (const Screened& one : outcome.screened) found.rejected += one.status != Status::Ok;
  found.failure = outcome.failure, found.complete = outcome.complete, found.decided = outcome.decided;
  if (outcome.interrupted) found.failure.clear();  // interrupted: the default did not fail
  if (!outcome.complete) return found;
  if (outcome.decided) lab.conclude(outcome);
  // What is not decided leaves an earlier choice as it was, if that could be raced.
  const Decision& d = outcome.decision;
  const bool stays =
      choice && !outcome.decided && std::ranges::count(outcome.racers, chosen, &Racer::point) > 0;
  const size_t answer = stays ? chosen : d.chosen;
  found.package = pathOf(answer), found.schedule = landscape[answer].schedule;
  found.conclusion = stays ? *choice->conclusion : conclusionOf(d);
  for (const Racer& racer : outcome.racers)
    if (racer.point == landscape.byDefault()) found.defaultSeconds = measure::median(racer.samples);
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
    if (!found.failure.empty())
      end = BundleEnd::Failed,
      run.say(found.task.text() + ": the default could not be measured: " + found.failure);
    else if (found.complete)
      run.say(lineOn(found));
  }
  return run.stop() ? BundleEnd::Stopped : end;
}

}  // namespace normc::tune
