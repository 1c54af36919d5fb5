// Bundles: plan.json, and behind a line `----` the records of the results. A plan is refused or read, and
// what the records say of its tasks is used or passed over, without a candidate being run.
#include <algorithm>

#include "autotune/records/Database.h"
#include "autotune/tune/Bundle.h"
#include "autotune/tune/Object.h"
#include "tests/fuzz/Folder.h"
#include "tests/fuzz/Lines.h"
#include "tests/fuzz/Target.h"
#include "tests/runtime/TestPackage.h"

namespace normc::fuzz {
namespace {

using tune::BundleError;
using Json = nlohmann::json;

/// The package of every candidate that has one, and the hash of its code. A plan says "?" for the hash.
struct Candidate {
  Candidate() {
    const std::string bytes = test::packageOf(test::layerNorm("forward", 24)).bytes();
    object = tune::objectOf(bytes);
    writeFile("bundle/0/0.npk", bytes);
  }
  std::string object;
};
const Candidate& candidate() {
  static const Candidate candidate;
  return candidate;
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Searches among the points of a task without a worker: neighbours, kinds and distances.
void checkLandscape(const tune::Landscape& landscape) {
  const size_t most = std::min<size_t>(landscape.size(), 8);
  for (size_t i = 0; i < most; ++i) {
    for (const size_t near : landscape.neighbours(i))
      require(near < landscape.size() && near != i, "a neighbour is another point");
    for (size_t j = 0; j < most; ++j) {
      require(landscape.knobDistance(i, j) == landscape.knobDistance(j, i), "a distance has no direction");
      require(landscape.familyDistance(i, j) == landscape.familyDistance(j, i),
              "a distance has no direction");
      require(!(landscape.simpler(i, j) && landscape.simpler(j, i)), "of two points one is the simpler");
    }
  }
  require(landscape.ranked().size() == landscape.size(), "each point has a rank");
  tune::SearchOptions options;
  const std::vector<size_t> seeds = tune::seedsOf(landscape, options);
  require(!seeds.empty() && seeds.front() == landscape.byDefault(), "the default is tried first");
  for (const size_t seed : seeds) require(seed < landscape.size(), "a seed is a point");
}

/// Checks that a record of each candidate would be read again: otherwise its measurement is lost.
void checkRecords(const tune::Shipped& task) {
  tune::Record record;
  record.task = task.setting.task, record.toolchain = task.setting.toolchain;
  record.task.threads = std::max<int64_t>(1, record.task.threads);
  record.device = {"cpu", task.setting.device.arch, "a processor", {}};
  for (size_t i = 0; i < std::min<size_t>(task.points.size(), 4); ++i) {
    record.generator = task.points[i].generator, record.schedule = task.points[i].schedule;
    record.object = task.made[i].object;
    require(tune::readLine(tune::lineOf(record)).record.has_value(),
            "what is measured of a plan can be recorded");
  }
}

void tuneWithoutWorker(const std::string& records) {
  tune::BundleRun run;
  run.folder = folder() + "/bundle", run.records = writeFile("bundle/results.jsonl", records);
  run.worker = folder() + "/no-worker";
  run.budget = 0.1;
  tune::OpenBundle bundle(run);
  for (const tune::Shipped& task : bundle.tasks()) {
    if (task.setting.device.kind == "cuda") continue;  // opens a driver
    try {
      const tune::Found found = bundle.tune(task, run.budget);
      require(found.remembered || !found.failure.empty(), "without a worker nothing is found that is new");
      if (!found.remembered) continue;
      require(found.complete && found.failure.empty(), "what is remembered is a choice");
      require(std::any_of(task.points.begin(), task.points.end(),
                          [&](const tune::Point& point) { return point.schedule == found.schedule; }),
              "what is chosen is a candidate of the task");
      require(found.conclusion.ratio > 0 && found.defaultSeconds > 0, "a choice has its times");
    } catch (const std::runtime_error& error) {
      require(*error.what() != 0, "a refusal has a reason");
      return;  // each further task would start a process
    }
  }
}

}  // namespace

void bundles(std::string_view input) {
  const size_t end = input.find("\n----\n");
  const std::string plan =
      replaced(std::string(input.substr(0, end)), "\"?\"", '"' + candidate().object + '"');
  std::string records;
  if (end != input.npos)
    for (const std::string& line : linesOf(input.substr(end + 6))) records += filledIn(line) + "\n";
  writeFile("bundle/plan.json", plan);
  std::vector<tune::Shipped> tasks;
  try {
    tasks = tune::readPlan(folder() + "/bundle");
  } catch (const BundleError& error) {
    require(std::string(error.what()).find("plan.json") != std::string::npos, "a refusal names the file");
    require(std::string(error.what()).find("export the bundle again") != std::string::npos,
            "a refusal says what to do: " + std::string(error.what()));
    return;
  }
  for (const tune::Shipped& task : tasks) {
    require(task.points.size() == task.made.size() && !task.points.empty(), "each point has a package");
    checkLandscape(tune::Landscape(task.points, 0));
    checkRecords(task);
  }
  const std::string written = tune::planText(tasks);
  writeFile("bundle/plan.json", written);
  require(tune::planText(tune::readPlan(folder() + "/bundle")) == written,
          "a plan is read as it was written");
  tuneWithoutWorker(records);
}

std::vector<std::string> seedsOfBundles() {
  const char* const head =
      R"({"schema":1,"tasks":[{"problem":"layer_norm:forward@f32[*x24]","norm":"h","segments":1,"rows":50,)"
      R"("features":24,"threads":1,"policy":"warm","spec":"norm layer_norm {}","toolchain":{"normc":"test"},)"
      R"("device":"cpu","arch":"x86-64-v3","candidates":[)";
  const char* const first =
      R"({"generator":"hand","schedule":"scalar","predicted":1.5,"at":[0,0],"family":"a b","package":"0/0.npk",)"
      R"("object":"?"})";
  const char* const second =
      R"({"generator":"hand","schedule":"other","predicted":2,"at":[0,1],"package":"0/0.npk","object":"?"})";
  const char* const choice =
      R"({"schema":1,"kind":"choice","task":{"problem":"layer_norm:forward@f32[*x24]","norm":"h","segments":1,)"
      R"("rows":50,"features":24,"threads":1,"policy":"warm"},"device":"?","toolchain":{"normc":"test"},)"
      R"("generator":"hand","schedule":"scalar","object":"o","status":"ok","gate":{"trials":1,"worst":0.5},)"
      R"("stage":"race","samples":[1e-4],"reference":[2e-4],"conclusion":{"verdict":"won","ratio":0.5,)"
      R"("low":0.4,"high":0.6},"session":"s","number":1,"stamp":7,"id":"?"})";
  const std::string plan = std::string(head) + first + "," + second + "]}]}";
  std::string trial = replaced(choice, R"("kind":"choice")", R"("kind":"trial")");
  return {plan,
          std::string(head) + first + "]}]}",
          plan + "\n----\n" + choice + "\n",
          plan + "\n----\n" + trial + "\n" + choice + "\n",
          R"({"schema":1,"tasks":[]})",
          R"({"schema":2})"};
}

}  // namespace normc::fuzz
