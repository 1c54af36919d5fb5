#include "autotune/worker/WorkerRequests.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "autotune/measure/Clock.h"
#include "autotune/measure/CudaTimer.h"
#include "autotune/measure/Order.h"
#include "autotune/measure/OwnCores.h"
#include "autotune/worker/TaskProblem.h"

namespace normc::tune {
namespace {

/// The reference takes about 100 ns per element; the largest trial has about this many elements.
constexpr int64_t kLargestTrial = 1 << 17;
/// The most elements of x in a trial of the first part of the gate. The rest takes several times as long.
constexpr int64_t kFirstTrials = 1 << 15;
constexpr size_t kCopies = 9;  ///< samples of a copy
/// Seconds until threads that slept while another candidate ran are awake.
constexpr double kAwake = 1e-3;

std::string firstLines(const std::string& text) { return text.substr(0, 2000); }

/// Returns the answer to a request that failed.
Json failed(const std::string& error, bool mayPass = false) {
  return ErrorAnswer{.error = firstLines(error), .mayPass = mayPass}.json();
}

/// True if a package that was just written could not be read, or memory or descriptors are out.
bool mayPass(normc_status status) {
  return status == NORMC_RESOURCE_EXHAUSTED || status == NORMC_DATA_LOSS || status == NORMC_NOT_FOUND;
}

}  // namespace

Json WorkerRequests::answer(const Json& request) {
  try {
    const std::string what = request.at("do");
    if (what == "task") {
      begin(TaskRequest::from(request));
      return taskAnswer();
    }
    if (what == "load") {
      load(LoadRequest::from(request));
      return Json::object();
    }
    if (what == "gate") return gate(GateRequest::from(request)).json();
    if (what == "sample") return sample(SampleRequest::from(request)).json();
    if (what == "copy") return copy(CopyRequest::from(request)).json();
    return failed("there is no request '" + what + "'");
  } catch (const host::Error& error) {
    return failed(error.what(), mayPass(error.status()));
  } catch (const std::bad_alloc&) {
    return failed(std::strerror(ENOMEM), true);
  } catch (const std::system_error& error) {
    return failed(error.what(), true);
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}

void WorkerRequests::begin(const TaskRequest& task) {
  const auto problem = problemOfTask(task.spec, task.problem);
  if (!problem) throw std::runtime_error(text(problem.errors()));
  machine_ = measure::thisMachine();
  problem_ = *problem;
  extents_ = {task.segments, task.rows, task.features};
  threads_ = int(task.threads);
  scatter_ = task.scatter;
  patience_ = task.patience;
  if (task.loops) known_ = *task.loops;
  policy_ = measure::findPolicy(task.policy).value();
  sampleSeconds_ = std::max(task.sampleSeconds, 20e-6);
  normc_context_options options{};
  options.max_threads = threads_;
  options.cuda_library = task.cudaLibrary.c_str();
  if (task.device == "cuda") device_ = std::make_unique<gate::CudaDevice>(task.index, task.cudaLibrary);
  context_ = std::make_unique<host::Context>(options);
}

std::vector<gate::Trial> WorkerRequests::trials() const {
  std::vector<gate::Trial> trials = gate::standardTrials(problem_, extents_.features);
  for (gate::Trial& trial : gate::trialsOfNumbers(problem_, extents_.features))
    trials.push_back(std::move(trial));
  // The timed sizes are a trial too, limited by the speed of the reference.
  gate::Trial timed{.extents = extents_, .step = gate::stepsBehindLimits(problem_)};
  const int64_t row = std::max<int64_t>(extents_.segments * extents_.features, 1);
  timed.extents.rows = std::min(extents_.rows, std::max<int64_t>(kLargestTrial / row, 3));
  trials.push_back(timed);
  return trials;
}

/// Limits the memory of this process, so that a candidate that allocates without bound ends only this
/// process.
void WorkerRequests::limitMemory(int64_t forBuffers) const {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  // Each question of the gate keeps up to eight tensors of doubles.
  int64_t asked = 0;
  for (const gate::Trial& trial : trials())
    asked +=
        trial.extents.segments * trial.extents.rows * trial.extents.features * int64_t(8 * sizeof(double));
  const int64_t spare = asked + (int64_t(2) << 30) + threads_ * (int64_t(128) << 20);
  const auto most = rlim_t(pages * sysconf(_SC_PAGESIZE) + forBuffers + spare);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
}

host::Plan WorkerRequests::plan(const host::Package& package,
                                const std::vector<normc_number>& numbers) const {
  normc_request request{};
  request.numbers = numbers.data();
  request.number_count = numbers.size();
  request.max_threads = device_ ? 0 : threads_;
  if (device_) {
    request.device_type = kDLCUDA;
    request.device_id = device_->index();
  }
  return host::Plan(package, problem_.text(), request);
}

void WorkerRequests::load(const LoadRequest& request) {
  if (!context_) throw std::runtime_error("a candidate is loaded for a task; send the task first");
  Candidate candidate;
  candidate.package = std::make_unique<host::Package>(*context_, request.package);
  candidate.plans = std::make_unique<gate::Plans>(
      [this, &package = *candidate.package](const auto& numbers) { return plan(package, numbers); });
  if (!buffers_) {
    const int64_t bytes = measure::Buffers::bytesOfSet(problem_, extents_);
    const bool cold = policy_ == measure::Policy::Cold;
    const int sets = !device_ ? measure::setsFor(policy_, bytes, machine_.lastCache, machine_.memory)
                     : cold   ? measure::coldSets(*device_, bytes)
                              : 1;
    if (!device_) limitMemory(2 * bytes * sets);  // a CUDA driver reserves large address ranges
    buffers_ = std::make_unique<measure::Buffers>(candidate.plans->plan(), problem_, extents_,
                                                  measure::BufferOptions{.sets = sets, .scatter = scatter_},
                                                  device_.get());
    if (policy_ == measure::Policy::Pipeline && !device_)
      reader_ = measure::makeReader(buffers_->output(0).data(), buffers_->output(0).bytes(), threads_);
  }
  candidate.subject = std::make_unique<measure::Subject>(plan(*candidate.package), *buffers_, reader_.get());
  candidates_.insert_or_assign(request.name, std::move(candidate));
}

WorkerRequests::Candidate& WorkerRequests::candidate(const std::string& name) {
  const auto at = candidates_.find(name);
  if (at == candidates_.end()) throw std::runtime_error("no candidate '" + name + "' is loaded");
  return at->second;
}

void WorkerRequests::makeQuestions() {
  std::vector<gate::Trial> trials = this->trials();
  std::vector<std::optional<Result<gate::Question>>> asked(trials.size());
  std::atomic<size_t> next = 0;
  const auto ask = [&] {
    for (size_t i; (i = next++) < trials.size();) {
      trials[i].placement.guardPages = !device_;
      asked[i].emplace(gate::questionFor(problem_, trials[i]));
    }
  };
  {  // for a device, use the whole host; for the CPU, only the threads of the task
    std::vector<std::jthread> helpers;
    if (device_) helpers.resize(std::clamp(std::thread::hardware_concurrency(), 1u, 16u) - 1);
    for (std::jthread& helper : helpers) helper = std::jthread(ask);
    ask();
  }
  for (auto& question : asked) {
    if (!*question) throw std::runtime_error(text(question->errors()));
    questions_.push_back(**std::move(question));
  }
}

/// True if the trial is judged before a candidate is screened. All kinds of data and of placements are in
/// trials of a few rows too, unless rows are very long.
bool WorkerRequests::isFirst(const gate::Question& question) const {
  const Extents& e = question.trial.extents;
  return e.segments * e.rows * e.features <= kFirstTrials;
}

GateAnswer WorkerRequests::gate(const GateRequest& request) {
  Candidate& judged = candidate(request.name);
  if (questions_.empty()) makeQuestions();
  GateAnswer answer;
  for (const gate::Question& question : questions_) {
    if (request.part != GatePart::All && isFirst(question) != (request.part == GatePart::First)) continue;
    for (const normc_plan* plan : judged.plans->of(question.trial)) {
      const gate::Verdict verdict = gate::judge(plan, problem_, question, device_.get());
      ++answer.trials;
      if (!verdict.ok) {
        answer.failure = firstLines(verdict.text);
        return answer;
      }
      answer.worst = std::max(answer.worst, verdict.worstRatio);
    }
  }
  return answer;
}

/// Returns the function that takes a sample: for a device, events around a graph of calls; for the CPU, the
/// clock around calls, repeated if disturbed.
std::function<double()> WorkerRequests::sampler(Candidate& one) {
  if (device_) {
    measure::Enqueue enqueue = [subject = one.subject.get()](int set) { subject->call(set); };
    if (policy_ == measure::Policy::Pipeline) {
      const gate::DeviceAddress output = buffers_->output(0).address();
      const measure::RoofBuffers reading{output, output, 0, buffers_->output(0).bytes()};
      if (!read_) read_ = roof().tuned(measure::RoofKind::Read, {reading});
      enqueue = [this, kernel = enqueue, reading](int set) {
        kernel(set);
        roof_->enqueue(measure::RoofKind::Read, *read_, reading);
      };
    }
    const auto timer =
        std::make_shared<measure::CudaTimer>(*device_, enqueue, buffers_->sets(), sampleSeconds_);
    return [timer] { return timer->sample(); };
  }
  const auto runner =
      std::make_shared<measure::Runner>(*one.subject, sampleSeconds_, threads_ > 1 ? kAwake : 0);
  return [this, runner] { return quiet_->sample([&] { return runner->sample(); }); };
}

measure::QuietCoreSampler& WorkerRequests::quietCore() {
  if (!quiet_) quiet_ = std::make_unique<measure::QuietCoreSampler>(patience_, known_);
  return *quiet_;
}

SampleAnswer WorkerRequests::sample(const SampleRequest& request) {
  const double end = measure::secondsNow() + request.seconds.value_or(measure::kLongestWait);
  std::vector<Candidate*> runners;
  for (const std::string& name : request.names) {
    Candidate& one = candidate(name);
    if (!one.take) one.take = sampler(one);
    runners.push_back(&one);
  }
  measure::QuietCoreSampler& quiet = quietCore();
  std::optional<measure::OwnCores> bound;
  if (!device_ && threads_ > 1) bound.emplace();
  const int disturbed = quiet.disturbed(), accepted = quiet.accepted();
  const int last = request.first + request.rounds;
  std::vector<measure::Samples> samples(runners.size());
  quiet.waitFor(end - measure::secondsNow());
  if (request.patience) quiet.setPatience(*request.patience);
  for (int round = request.first; round < last; ++round) {
    const double start = measure::secondsNow();
    for (const size_t turn : measure::orderOfRound(runners.size(), round))
      samples[turn].push_back(runners[turn]->take());
    if (measure::secondsNow() + (measure::secondsNow() - start) > end) break;
  }
  return {.samples = std::move(samples),
          .disturbed = quiet.disturbed() - disturbed,
          .accepted = quiet.accepted() - accepted,
          .loops = quiet.best(),
          .patience = quiet.patience()};
}

measure::Roof& WorkerRequests::roof() {
  if (!roof_) roof_ = std::make_unique<measure::Roof>(*device_);
  return *roof_;
}

/// Returns the seconds of a copy or a triad on the buffers of the kernels; 0 if neither moves as many bytes.
double WorkerRequests::roofSeconds(const measure::Traffic& traffic) {
  if (traffic.writes != 1 || traffic.reads > 2) return 0;
  const measure::RoofKind kind = traffic.reads == 2 ? measure::RoofKind::Triad : measure::RoofKind::Copy;
  const std::vector<measure::RoofBuffers> sets = buffers_->roofBuffers();
  if (traffic.reads == 2 && sets.front().second == 0) return 0;
  if (sets.front().bytes != buffers_->bytesOfTransfer()) return 0;  // types of several sizes
  const measure::RoofLaunch launch = roof().tuned(kind, sets);
  const measure::CudaTimer timer(
      *device_, [&](int set) { roof_->enqueue(kind, launch, sets[size_t(set)]); }, int(sets.size()),
      sampleSeconds_);
  return measure::median(measure::race({&timer}, int(kCopies))[0]);
}

CopyAnswer WorkerRequests::copy(const CopyRequest& request) {
  if (!buffers_) throw std::runtime_error("nothing is loaded yet that could be copied");
  const measure::Traffic traffic = request.traffic;
  if (device_) return {.seconds = roofSeconds(traffic)};
  if (traffic.reads < 1 || traffic.writes < 1) return {.seconds = 0};
  const int64_t bytes = buffers_->bytesOfTransfer();
  const measure::TensorSet& call = buffers_->tensors(0);
  const measure::CopyTensors tensors(call.inputs().size(), call.outputs().size(), bytes);
  measure::QuietCoreSampler& quiet = quietCore();
  std::optional<measure::OwnCores> bound;
  if (threads_ > 1) bound.emplace();
  const double end = measure::secondsNow() + request.seconds.value_or(measure::kLongestWait);
  quiet.waitFor(end - measure::secondsNow());
  double best = 0;
  for (const measure::Stores stores : {measure::Stores::Cached, measure::Stores::Streaming}) {
    const auto copy = measure::makeCopy(tensors.inputs, tensors.outputs, bytes, traffic, stores, threads_);
    measure::Runner runner(*copy, sampleSeconds_, threads_ > 1 ? kAwake : 0);
    measure::Samples samples;
    while (samples.size() < kCopies && (samples.empty() || measure::secondsNow() + runner.seconds() < end))
      samples.push_back(quiet.sample([&] { return runner.sample(); }));
    const double seconds = measure::median(samples);
    if (best == 0 || seconds < best) best = seconds;
    if (measure::secondsNow() > end) break;
  }
  return {.seconds = best};
}

}  // namespace normc::tune
