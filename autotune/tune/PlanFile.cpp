#include "autotune/tune/PlanFile.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "autotune/measure/Policy.h"
#include "autotune/records/ParseJson.h"
#include "autotune/worker/TaskProblem.h"

namespace normc::tune {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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
  s.setting.device.kind = kind;
  s.setting.device.arch = textOf(json, "arch");
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

}  // namespace normc::tune
