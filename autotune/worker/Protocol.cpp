#include "autotune/worker/Protocol.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "autotune/records/Record.h"

namespace normc::tune {
namespace {

constexpr double kLargestFinite = std::numeric_limits<double>::max();
constexpr std::array<const char*, 3> kPartNames{"first", "rest", "all"};  ///< by GatePart

int64_t countIn(const Json& json) {
  if (!json.is_number_integer()) throw ImpossibleNumber();
  if (json < 0 || json > kMostWhole) throw ImpossibleNumber();
  return json.get<int64_t>();
}

/// Returns a number from `least` to `most`.
double numberIn(const Json& json, double least, double most) {
  const double value = json.get<double>();
  if (!(value >= least && value <= most)) throw ImpossibleNumber();
  return value;
}

measure::Samples timesIn(const Json& json) {
  auto times = json.get<measure::Samples>();
  for (const double time : times)
    if (!(time > 0 && std::isfinite(time))) throw ImpossibleNumber();
  return times;
}

std::optional<double> optionalNumber(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  return json.at(key).get<double>();
}

}  // namespace

Json TaskRequest::json() const {
  Json json = {{"do", "task"},
               {"problem", problem},
               {"spec", spec},
               {"segments", segments},
               {"rows", rows},
               {"features", features},
               {"threads", threads},
               {"policy", policy},
               {"sample_seconds", sampleSeconds},
               {"scatter", scatter},
               {"device", device},
               {"index", index},
               {"cuda_library", cudaLibrary},
               {"patience", patience}};
  if (loops) json["loops"] = {loops->waiting, loops->filling};
  return json;
}

TaskRequest TaskRequest::from(const Json& json) {
  TaskRequest task;
  task.spec = json.at("spec").get<std::string>();
  task.problem = json.at("problem").get<std::string>();
  task.segments = json.at("segments").get<int64_t>();
  task.rows = json.at("rows").get<int64_t>();
  task.features = json.at("features").get<int64_t>();
  task.threads = json.at("threads").get<int64_t>();
  task.scatter = json.value("scatter", task.scatter);
  task.patience = json.value("patience", task.patience);
  if (json.contains("loops")) {
    const Json& loops = json.at("loops");
    task.loops = measure::Loops{.waiting = loops.at(0).get<double>(), .filling = loops.at(1).get<double>()};
  }
  task.policy = json.at("policy").get<std::string>();
  task.sampleSeconds = json.at("sample_seconds").get<double>();
  task.cudaLibrary = json.value("cuda_library", task.cudaLibrary);
  task.device = json.value("device", task.device);
  task.index = json.value("index", task.index);
  return task;
}

Json taskAnswer() { return {{"protocol", kProtocol}}; }

bool isOfThisVersion(const Json& taskAnswer) { return taskAnswer.value("protocol", Json()) == kProtocol; }

Json LoadRequest::json() const { return {{"do", "load"}, {"name", name}, {"package", package}}; }

LoadRequest LoadRequest::from(const Json& json) {
  return {.name = json.at("name").get<std::string>(), .package = json.at("package").get<std::string>()};
}

Json GateRequest::json() const {
  return {{"do", "gate"}, {"name", name}, {"part", kPartNames[size_t(part)]}};
}

GateRequest GateRequest::from(const Json& json) {
  const std::string part = json.value("part", "all");
  return {.name = json.at("name").get<std::string>(),
          .part = part == "all"     ? GatePart::All
                  : part == "first" ? GatePart::First
                                    : GatePart::Rest};
}

Json GateAnswer::json() const { return {{"trials", trials}, {"worst", worst}, {"failure", failure}}; }

GateAnswer GateAnswer::from(const Json& json) {
  return {.trials = countIn(json.at("trials")),
          .worst = numberIn(json.at("worst"), 0, kLargestFinite),
          .failure = json.at("failure").get<std::string>()};
}

Json SampleRequest::json() const {
  Json json = {{"do", "sample"}, {"names", names}, {"first", first}, {"rounds", rounds}};
  if (patience) json["patience"] = *patience;
  if (seconds) json["seconds"] = *seconds;
  return json;
}

SampleRequest SampleRequest::from(const Json& json) {
  return {.names = json.at("names").get<std::vector<std::string>>(),
          .first = json.value("first", 0),
          .rounds = json.at("rounds").get<int>(),
          .patience = optionalNumber(json, "patience"),
          .seconds = optionalNumber(json, "seconds")};
}

Json SampleAnswer::json() const {
  return {{"samples", samples},
          {"disturbed", disturbed},
          {"accepted", accepted},
          {"loops", {loops.waiting, loops.filling}},
          {"patience", patience}};
}

SampleAnswer SampleAnswer::from(const Json& json, const SampleRequest& request) {
  SampleAnswer answer;
  for (const Json& each : json.at("samples")) answer.samples.push_back(timesIn(each));
  const size_t most = size_t(request.rounds), least = request.seconds ? 1 : most;
  const auto wrong = [&](const measure::Samples& each) {
    return each.size() != answer.samples[0].size() || each.size() < least || each.size() > most;
  };
  if (answer.samples.size() != request.names.size() || std::ranges::any_of(answer.samples, wrong))
    throw std::length_error("samples");
  answer.disturbed = countIn(json.at("disturbed"));
  const Json& loops = json.at("loops");
  answer.loops = {.waiting = numberIn(loops.at(0), 0, kLargestFinite),
                  .filling = numberIn(loops.at(1), 0, kLargestFinite)};
  answer.patience = numberIn(json.at("patience"), -kLargestFinite, request.patience.value_or(kLargestFinite));
  answer.accepted = countIn(json.at("accepted"));
  return answer;
}

Json CopyRequest::json() const {
  Json json = {{"do", "copy"}, {"reads", traffic.reads}, {"writes", traffic.writes}};
  if (seconds) json["seconds"] = *seconds;
  return json;
}

CopyRequest CopyRequest::from(const Json& json) {
  return {.traffic = {.reads = json.at("reads").get<int>(), .writes = json.at("writes").get<int>()},
          .seconds = optionalNumber(json, "seconds")};
}

Json CopyAnswer::json() const { return {{"seconds", seconds}}; }

CopyAnswer CopyAnswer::from(const Json& json) {
  return {.seconds = numberIn(json.at("seconds"), 0, kLargestFinite)};
}

Json ErrorAnswer::json() const {
  Json json = {{"error", error}};
  if (mayPass) json["may_pass"] = true;
  return json;
}

ErrorAnswer ErrorAnswer::from(const Json& json) {
  if (!json.contains("error")) return {};
  return {.error = json.at("error").get<std::string>(), .mayPass = json.value("may_pass", Json()) == true};
}

}  // namespace normc::tune
