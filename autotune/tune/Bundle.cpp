#include "autotune/tune/Bundle.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "autotune/tune/Here.h"

namespace normc::tune {
namespace {

constexpr int kPlanSchema = 1;

Json toJson(const Shipped& s) {
  const Task& t = s.setting.task;
  Json points = Json::array();
  for (size_t i = 0; i < s.points.size(); ++i)
    points.push_back({{"generator", s.points[i].generator},
                      {"schedule", s.points[i].schedule},
                      {"predicted", s.points[i].predicted},
                      {"at", s.points[i].at},
                      {"package", s.made[i].package},
                      {"object", s.made[i].object}});
  return {{"problem", t.problem},
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

Shipped fromJson(const Json& json) {
  Shipped s;
  s.setting.task = {json.at("problem"),  json.at("norm"),    json.at("segments"), json.at("rows"),
                    json.at("features"), json.at("threads"), json.at("policy")};
  s.setting.spec = json.at("spec");
  s.setting.toolchain = json.at("toolchain").get<std::map<std::string, std::string>>();
  s.setting.device.kind = json.at("device"), s.setting.device.arch = json.at("arch");
  for (const Json& point : json.at("candidates")) {
    s.points.push_back({point.at("generator"), point.at("schedule"), point.at("predicted"),
                        point.at("at").get<std::vector<int>>()});
    s.made.push_back({point.at("package"), point.at("object"), ""});
  }
  if (s.points.empty()) throw std::runtime_error("a task has no candidates");
  return s;
}

/// The task as it is here: this machine measures it.
Setting here(const Shipped& shipped, const BundleRun& run, const std::string& session) {
  Setting setting = shipped.setting;
  setting.session = session;
  if (setting.device.kind == "cuda") {
    const std::string arch = setting.device.arch;  // what the code is for, which an older arch may be
    setting.device = cudaDeviceHere(run.deviceIndex, run.cudaLibrary);
    setting.device.arch = arch;
    setting.deviceIndex = run.deviceIndex, setting.cudaLibrary = run.cudaLibrary;
    setting.task.threads = 1;
    setting.sampleSeconds = 1e-3;
    return setting;
  }
  setting.device = processorHere(shipped.setting.device.arch);
  if (setting.task.threads == 0) setting.task.threads = setting.device.facts.at("cores");
  return setting;
}

}  // namespace

std::string planText(const std::vector<Shipped>& tasks) {
  Json all = Json::array();
  for (const Shipped& task : tasks) all.push_back(toJson(task));
  return Json{{"schema", kPlanSchema}, {"tasks", all}}.dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

Result<std::vector<Shipped>> readPlan(const std::string& folder) {
  const std::string path = folder + "/plan.json";
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Diagnostic{.message = "cannot read " + path,
                      .hint = "a bundle is a folder that `normc tune export` made"};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = Json::parse(text, nullptr, false);
  try {
    if (!json.is_object() || json.at("schema") != kPlanSchema)
      return Diagnostic{.message = path + " is not a plan of this version of normc",
                        .hint = "export the bundle again"};
    std::vector<Shipped> tasks;
    for (const Json& task : json.at("tasks")) tasks.push_back(fromJson(task));
    return tasks;
  } catch (const std::exception& error) {
    return Diagnostic{.message = path + " is damaged: " + error.what(), .hint = "export the bundle again"};
  }
}

bool runBundle(const BundleRun& run) {
  const auto plan = readPlan(run.folder);
  if (!plan) throw std::runtime_error(plan.errors()[0].message + "; " + plan.errors()[0].hint);
  Journal journal(run.records);
  const auto known = readDatabase(run.records);
  if (!known) throw std::runtime_error(known.errors()[0].message);
  const std::string session = newSession();
  bool whole = true;
  for (const Shipped& shipped : *plan) {
    if (run.stop()) return false;
    const Setting setting = here(shipped, run, session);
    const Landscape landscape(shipped.points, 0);
    LiveLab::Hands hands;
    hands.make = [&](const std::vector<size_t>& points) {
      std::vector<Made> made;
      for (const size_t point : points) {
        made.push_back(shipped.made[point]);
        made.back().package = run.folder + "/" + made.back().package;
      }
      return made;
    };
    hands.stop = run.stop, hands.worker = run.worker, hands.journal = &journal;
    LiveLab lab(landscape, setting, hands, rememberedFrom(landscape, known->records, setting));
    SearchOptions options;
    options.budget = run.budget;
    const Outcome outcome = search(landscape, lab, options);
    whole &= outcome.complete;
    if (!outcome.failure.empty()) {
      run.say(setting.task.text() + ": the default could not be measured: " + outcome.failure);
      continue;
    }
    lab.conclude(outcome);
    char gain[64] = "the default stays";
    if (!outcome.decision.tie)
      std::snprintf(gain, sizeof gain, "%.2fx the default", 1 / outcome.decision.ratio.value);
    run.say(setting.task.text() + ": " + std::to_string(outcome.screened.size()) + " candidates, " + gain +
            ", " + landscape[outcome.decision.chosen].schedule);
  }
  return whole;
}

}  // namespace normc::tune
