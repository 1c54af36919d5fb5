#include "autotune/tune/WorkerClient.h"

#include <cmath>
#include <utility>

namespace normc::tune {
namespace {

constexpr size_t kAnswerShown = 200;

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

std::string reasonOf(const Worker::Ended& ended) {
  return ended.log.empty() ? ended.how : ended.how + "; it said: " + ended.log;
}

}  // namespace

std::optional<CandidateFailure> attempt(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Worker::Ended& ended) {
    return CandidateFailure{ended.hung ? Status::Hung : Status::Crashed, reasonOf(ended)};
  } catch (const CannotDo& refusal) {
    return CandidateFailure{Status::Refused, refusal.what(), refusal.mayPass};
  }
}

WorkerClient::WorkerClient(const Setting& setting, std::string worker)
    : setting_(setting), program_(std::move(worker)), rows_(setting.task.rows) {}

void WorkerClient::setRows(int64_t rows) {
  if (rows != rows_) worker_.reset();
  rows_ = rows;
}

void WorkerClient::renew() {
  worker_.reset();
  ++renewed_;
}

TaskRequest WorkerClient::task() const {
  const Task& t = setting_.task;
  // Fewer rows would stay in the caches if all calls had the same.
  const bool rotated = rows_ != t.rows && t.policy == "warm";
  return {.problem = t.problem.text(),
          .spec = setting_.spec,
          .segments = t.segments,
          .rows = rows_,
          .features = t.features,
          .threads = t.threads,
          .policy = rotated ? "cold" : t.policy,
          .sampleSeconds = setting_.sampleSeconds,
          .scatter = renewed_ + 1,
          .device = setting_.device.kind,
          .index = setting_.deviceIndex,
          .cudaLibrary = setting_.cudaLibrary,
          .patience = setting_.quietPatience,
          .loops = std::isfinite(loops_.filling) ? std::optional(loops_) : std::nullopt};
}

Worker& WorkerClient::worker() {
  if (worker_ && worker_->alive()) return *worker_;
  loaded_.clear();
  worker_ = std::make_unique<Worker>(program_);
  const Json request = task().json();
  const Json answer = worker_->ask(request, setting_.patience);
  const ErrorAnswer failure = shaped(program_, request, answer, ErrorAnswer::from);
  if (!failure.error.empty()) throw std::runtime_error(failure.error);
  if (!isOfThisVersion(answer)) throw otherVersion(program_, request, answer);
  return *worker_;
}

template <typename Read>
auto WorkerClient::ask(const Json& request, double seconds, const Read& read) {
  const Json answer = worker().ask(request, seconds);
  const ErrorAnswer failure = shaped(program_, request, answer, ErrorAnswer::from);
  if (!failure.error.empty()) throw CannotDo(failure.error, failure.mayPass);
  try {
    return shaped(program_, request, answer, read);
  } catch (const ImpossibleNumber&) {
    worker_.reset();
    throw Worker::Ended{
        "answered " + shortened(answer) +
            ", with a number that no measurement gives: a kernel may have written over it; so "
            "it was ended",
        ""};
  }
}

void WorkerClient::load(size_t point, const BuiltCandidate& made) {
  const LoadRequest request{.name = nameOf(point), .package = made.package};
  ask(request.json(), setting_.patience, [](const Json&) { return 0; });
  loaded_.insert(point);
}

GateAnswer WorkerClient::gate(size_t point, GatePart part, double seconds) {
  const GateRequest request{.name = nameOf(point), .part = part};
  GateAnswer verdict = ask(request.json(), seconds, GateAnswer::from);
  if (!verdict.failure.empty()) worker_.reset();  // a wrong kernel may have written anywhere in the process
  return verdict;
}

std::vector<Samples> WorkerClient::sample(const std::vector<size_t>& points, int first, int rounds,
                                          double patience, double quiet, std::optional<double> seconds) {
  SampleRequest request{.first = first, .rounds = rounds, .patience = quiet, .seconds = seconds};
  for (const size_t point : points) request.names.push_back(nameOf(point));
  SampleAnswer answer = ask(request.json(), patience + quiet,
                            [&](const Json& json) { return SampleAnswer::from(json, request); });
  disturbed_ += answer.disturbed;
  loops_ = measure::fastest(loops_, answer.loops);
  waited_ += quiet - answer.patience;
  patient_ &= answer.accepted == 0;
  return std::move(answer.samples);
}

double WorkerClient::copy(const measure::Traffic& traffic, double seconds) {
  const CopyRequest request{.traffic = traffic, .seconds = seconds};
  return ask(request.json(), setting_.patience + setting_.quietPatience, CopyAnswer::from).seconds;
}

}  // namespace normc::tune
