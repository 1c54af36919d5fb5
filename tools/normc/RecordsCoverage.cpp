#include "tools/normc/RecordsCoverage.h"

#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <tuple>

#include "autotune/records/Standing.h"
#include "tools/normc/TaskRecords.h"

namespace normc::cli {
namespace {

/// A problem of any sizes, under the conditions of a call. `norm` is the hash that tells norms of one name
/// apart.
struct Subject {
  std::string problem, norm, policy;
  int64_t threads = 1;
  auto operator<=>(const Subject&) const = default;
};

/// The tasks of a subject that one device has tuned with one toolchain or several.
struct Covered {
  std::set<int64_t> features, rows;
  int64_t won = 0;
  double logOfWins = 0;                                   ///< sum of the logarithms of default over chosen
  std::set<std::tuple<int64_t, int64_t, int64_t>> tasks;  ///< segments, rows, features
};

struct Place {
  std::string name;  ///< of the device, with its architecture
  std::map<Subject, Covered> subjects;
};

Subject subjectOf(const tune::Task& task) { return {anySizesOf(task), task.norm, task.policy, task.threads}; }

/// Returns the places by the id of their device.
std::map<std::string, Place> placesOf(const tune::Database& all) {
  std::map<std::string, Place> places;
  for (const tune::Record* r : tune::standingChoices(all.records)) {
    Place& place = places[r->device.id()];
    place.name = r->device.text();
    Covered& covered = place.subjects[subjectOf(r->task)];
    covered.features.insert(r->task.features);
    covered.rows.insert(r->task.totalRows());
    covered.tasks.insert({r->task.segments, r->task.rows, r->task.features});
    if (r->conclusion->verdict != tune::Verdict::Won) continue;
    ++covered.won;
    covered.logOfWins -= std::log(r->conclusion->ratio);
  }
  return places;
}

/// Returns the features that some device has tuned of each subject.
std::map<Subject, std::set<int64_t>> featuresAnywhere(const std::map<std::string, Place>& places) {
  std::map<Subject, std::set<int64_t>> anywhere;
  for (const auto& [id, place] : places)
    for (const auto& [subject, covered] : place.subjects)
      anywhere[subject].insert(covered.features.begin(), covered.features.end());
  return anywhere;
}

std::set<int64_t> without(std::set<int64_t> all, const std::set<int64_t>& some) {
  for (int64_t each : some) all.erase(each);
  return all;
}

std::string listOf(const std::set<int64_t>& numbers) {
  std::vector<std::string> words;
  for (int64_t n : numbers) words.push_back(std::to_string(n));
  return joined(words, ",");
}

}  // namespace

ExitCode showCoverage(const tune::Database& all, Output& out) {
  const std::map<std::string, Place> places = placesOf(all);
  const auto anywhere = featuresAnywhere(places);
  Json devices = Json::array();
  std::string text;
  for (const auto& [id, place] : places) {
    Json problems = Json::array();
    Table table({"problem", "norm", ">threads", "policy", ">tuned", ">won", ">mean", "features", "rows",
                 "elsewhere alone"});
    for (const auto& [subject, features] : anywhere) {
      const auto found = place.subjects.find(subject);
      const Covered covered = found == place.subjects.end() ? Covered{} : found->second;
      const std::set<int64_t> missing = without(features, covered.features);
      const double mean = covered.won ? std::exp(covered.logOfWins / double(covered.won)) : 1;
      table.row({subject.problem, shortHash(subject.norm), std::to_string(subject.threads), subject.policy,
                 std::to_string(covered.tasks.size()), std::to_string(covered.won),
                 covered.won ? digitsText(mean, 3) + "x" : "", listOf(covered.features), listOf(covered.rows),
                 listOf(missing)});
      problems.push_back({{"problem", subject.problem},
                          {"norm", subject.norm},
                          {"threads", subject.threads},
                          {"policy", subject.policy},
                          {"tasks", covered.tasks.size()},
                          {"won", covered.won},
                          {"mean_of_wins", mean},
                          {"features", covered.features},
                          {"rows", covered.rows},
                          {"elsewhere_alone", missing}});
    }
    devices.push_back({{"device", place.name}, {"device_id", id}, {"problems", problems}});
    text += (text.empty() ? "" : "\n") + place.name + " (" + id.substr(0, 8) + ")\n" + table.text(2);
  }
  if (out.json)
    out.result({{"devices", devices}});
  else
    out.results() << (text.empty() ? "no choice counts\n" : text);
  return ExitCode::Ok;
}

}  // namespace normc::cli
