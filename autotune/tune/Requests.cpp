#include "autotune/tune/Requests.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace normc::tune {
namespace {

constexpr size_t kAnswerShown = 200;
constexpr double kLargestFinite = std::numeric_limits<double>::max();

std::string nameOf(size_t point) { return std::to_string(point); }

/// Returns the beginning of an answer.
std::string shortened(const Json& answer) {
  const std::string text = answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(0, kAnswerShown) + (text.size() > kAnswerShown ? "..." : "");
}

std::runtime_error otherVersion(const std::string& worker, const Json& request, const Json& answer) {
  return std::runtime_error(worker + " is of another version of normc: to '" +
                            request.at("do").get<std::string>() + "' it answered " + shortened(answer) +
                            "; install both from one build");
}

/// Returns the result of `read` on an answer.
template <typename Read>
auto shaped(const std::string& worker, const Json& request, const Json& answer, const Read& read) {
  try {
    return read(answer);
  } catch (const Json::exception&) {
  } catch (const std::length_error&) {  // an impossible number of samples
  }
  throw otherVersion(worker, request, answer);
}

/// A number that no measurement gives: a candidate may write anywhere in the worker. Records do not hold it.
struct Impossible {};

int64_t countIn(const Json& json) {
  if (!json.is_number_integer()) throw Impossible();
  if (json < 0 || json > kMostWhole) throw Impossible();
  return json.get<int64_t>();
}

/// Returns a number from `least` to `most`.
double numberIn(const Json& json, double least, double most) {
  const double value = json.get<double>();
  if (!(value >= least && value <= most)) throw Impossible();
  return value;
}

Samples timesIn(const Json& json) {
  auto times = json.get<Samples>();
  for (const double time : times)
    if (!(time > 0 && std::isfinite(time))) throw Impossible();
  return times;
}

std::string errorOf(const Json& answer) {
  return answer.contains("error") ? answer.at("error").get<std::string>() : "";
}

}  // namespace

Requests::Requests(const Setting& setting, std::string worker)
    : setting_(setting), program_(std::move(worker)), rows_(setting.task.rows) {}

void Requests::setRows(int64_t rows) {
  if (rows != rows_) worker_.reset();
  rows_ = rows;
}

Worker& Requests::worker() {
  if (worker_ && worker_->alive()) return *worker_;
  loaded_.clear();
  worker_ = std::make_unique<Worker>(program_);
  const Task& t = setting_.task;
  // Fewer rows would stay in the caches if all calls had the same.
  const bool rotated = rows_ != t.rows && t.policy == "warm";
  Json task = {{"do", "task"},
               {"problem", t.problem.text()},
               {"spec", setting_.spec},
               {"segments", t.segments},
               {"rows", rows_},
               {"features", t.features},
               {"threads", t.threads},
               {"policy", rotated ? "cold" : t.policy},
               {"sample_seconds", setting_.sampleSeconds},
               {"scatter", renewed_ + 1},
               {"device", setting_.device.kind},
               {"index", setting_.deviceIndex},
               {"cuda_library", setting_.cudaLibrary},
               {"patience", setting_.quietPatience}};
  if (std::isfinite(loops_.filling)) task["loops"] = {loops_.waiting, loops_.filling};
  const Json answer = worker_->ask(task, setting_.patience);
  if (const std::string error = shaped(program_, task, answer, errorOf); !error.empty())
    throw std::runtime_error(error);
  if (answer.value("protocol", Json()) != kProtocol) throw otherVersion(program_, task, answer);
  return *worker_;
}

template <typename Read>
auto Requests::ask(const Json& request, double seconds, const Read& read) {
  const Json answer = worker().ask(request, seconds);
  if (const std::string error = shaped(program_, request, answer, errorOf); !error.empty())
    throw CannotDo(error, answer.value("may_pass", Json()) == true);
  try {
    return shaped(program_, request, answer, read);
  } catch (const Impossible&) {
    worker_.reset();
    throw Worker::Ended{
        "answered " + shortened(answer) +
            ", with a number that no measurement gives: a kernel may have written over it; so "
            "it was ended",
        ""};
  }
}

void Requests::load(size_t point, const BuiltCandidate& made) {
  ask({{"do", "load"}, {"name", nameOf(point)}, {"package", made.package}}, setting_.patience,
      [](const Json&) { return 0; });
  loaded_.insert(point);
}

Requests::Verdict Requests::gate(size_t point, Part part, double seconds) {
  const char* const parts[] = {"first", "rest", "all"};
  const Verdict verdict = ask(
      {{"do", "gate"}, {"name", nameOf(point)}, {"part", parts[int(part)]}}, seconds, [](const Json& gate) {
        return Verdict{countIn(gate.at("trials")), numberIn(gate.at("worst"), 0, kLargestFinite),
                       gate.at("failure").get<std::string>()};
      });
  if (!verdict.failure.empty()) worker_.reset();  // a wrong kernel may have written anywhere in the process
  return verdict;
}

std::vector<Samples> Requests::sample(const std::vector<size_t>& points, int first, int rounds,
                                      double patience, double quiet, std::optional<double> seconds) {
  std::vector<std::string> names;
  for (const size_t point : points) names.push_back(nameOf(point));
  Json request = {{"do", "sample"}, {"names", names}, {"first", first}, {"rounds", rounds}};
  request["patience"] = quiet;
  if (seconds) request["seconds"] = *seconds;
  return ask(request, patience + quiet, [&](const Json& answer) {
    std::vector<Samples> samples;
    for (const Json& each : answer.at("samples")) samples.push_back(timesIn(each));
    const size_t least = seconds ? 1 : size_t(rounds);
    const auto wrong = [&](const Samples& each) {
      return each.size() != samples[0].size() || each.size() < least || each.size() > size_t(rounds);
    };
    if (samples.size() != points.size() || std::any_of(samples.begin(), samples.end(), wrong))
      throw std::length_error("samples");
    const int64_t disturbed = countIn(answer.at("disturbed"));
    const Json& loops = answer.at("loops");
    const measure::Loops measured{numberIn(loops.at(0), 0, kLargestFinite),
                                  numberIn(loops.at(1), 0, kLargestFinite)};
    const double left = numberIn(answer.at("patience"), -kLargestFinite, quiet);
    const int64_t accepted = countIn(answer.at("accepted"));
    disturbed_ += disturbed, loops_ = measure::fastest(loops_, measured);
    waited_ += quiet - left, patient_ &= accepted == 0;
    return samples;
  });
}

double Requests::copy(const measure::Traffic& traffic, double seconds) {
  return ask({{"do", "copy"}, {"reads", traffic.reads}, {"writes", traffic.writes}, {"seconds", seconds}},
             setting_.patience + setting_.quietPatience,
             [](const Json& answer) { return numberIn(answer.at("seconds"), 0, kLargestFinite); });
}

}  // namespace normc::tune
