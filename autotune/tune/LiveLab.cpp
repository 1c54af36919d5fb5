#include "autotune/tune/LiveLab.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "autotune/records/Standing.h"

namespace normc::tune {
namespace {

constexpr int kScreenRounds = 5;
constexpr int kUntimed = 2;  ///< untimed calls before a request's first sample, in rounds
constexpr double kLeastPatience = 5;
/// Approximate seconds of one request for samples, which limits the delay of a stop.
constexpr double kRequestSeconds = 2;
constexpr size_t kAnswerShown = 200;
constexpr double kForever = std::numeric_limits<double>::max();

std::string nameOf(size_t point) { return std::to_string(point); }

/// A failure that a worker reported: of the candidate if it was loaded, else of the task.
struct CannotDo : std::runtime_error {
  explicit CannotDo(const std::string& error, bool mayPass = false)
      : std::runtime_error(error), mayPass(mayPass) {}
  bool mayPass;  ///< memory, descriptors or a file were missing: no fault of the candidate
};

std::string reasonOf(const Worker::Ended& ended) {
  return ended.log.empty() ? ended.how : ended.how + "; it said: " + ended.log;
}

/// Returns the beginning of an answer.
std::string shortened(const Json& answer) {
  const std::string text = answer.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(0, kAnswerShown) + (text.size() > kAnswerShown ? "..." : "");
}

std::runtime_error otherVersion(const std::string& worker, const Json& request, const Json& answer) {
  return std::runtime_error(worker + " is of another version of normc: to `" +
                            request.at("do").get<std::string>() + "` it answered " + shortened(answer) +
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

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

LiveLab::LiveLab(const Landscape& landscape, const Setting& setting, Callbacks callbacks,
                 std::map<size_t, Screened> remembered)
    : landscape_(landscape),
      setting_(setting),
      callbacks_(std::move(callbacks)),
      remembered_(std::move(remembered)),
      quietPatience_(setting.quietPatience),
      begin_(secondsNow()) {
  remembered_.erase(landscape_.byDefault());
}
LiveLab::~LiveLab() = default;

double LiveLab::now() { return secondsNow() - begin_; }

double LiveLab::limit() const {
  return longestGate_ == 0 ? setting_.patience
                           : std::min(setting_.patience, std::max(kLeastPatience, 10 * longestGate_));
}

Worker& LiveLab::worker() {
  if (worker_ && worker_->alive()) return *worker_;
  loaded_.clear();
  worker_ = std::make_unique<Worker>(callbacks_.worker);
  const Task& t = setting_.task;
  Json task = {{"do", "task"},
               {"problem", t.problem.text()},
               {"spec", setting_.spec},
               {"segments", t.segments},
               {"rows", t.rows},
               {"features", t.features},
               {"threads", t.threads},
               {"policy", t.policy},
               {"sample_seconds", setting_.sampleSeconds},
               {"scatter", renewed_ + 1},
               {"device", setting_.device.kind},
               {"index", setting_.deviceIndex},
               {"cuda_library", setting_.cudaLibrary},
               {"patience", quietPatience_}};
  if (std::isfinite(loops_.filling)) task["loops"] = {loops_.waiting, loops_.filling};
  const Json answer = worker_->ask(task, setting_.patience);
  if (const std::string error = shaped(callbacks_.worker, task, answer, errorOf); !error.empty())
    throw std::runtime_error(error);
  if (answer.value("protocol", Json()) != kProtocol) throw otherVersion(callbacks_.worker, task, answer);
  return *worker_;
}

template <typename Read>
auto LiveLab::ask(const Json& request, double seconds, const Read& read) {
  const Json answer = worker().ask(request, seconds);
  if (const std::string error = shaped(callbacks_.worker, request, answer, errorOf); !error.empty())
    throw CannotDo(error, answer.value("may_pass", Json()) == true);
  try {
    return shaped(callbacks_.worker, request, answer, read);
  } catch (const Impossible&) {
    worker_.reset();
    throw Worker::Ended{
        "answered " + shortened(answer) +
            ", with a number that no measurement gives: a kernel may have written over it; so "
            "it was ended",
        ""};
  }
}

void LiveLab::makeAll(const std::vector<size_t>& points) {
  std::vector<size_t> missing;
  for (const size_t point : points)
    if (!facts_[point].made && !remembered_.contains(point)) missing.push_back(point);
  if (missing.empty()) return;
  std::vector<BuiltCandidate> made = callbacks_.make(missing);
  for (size_t i = 0; i < made.size(); ++i) facts_[missing[i]].made = std::move(made[i]);
}

void LiveLab::load(size_t point) {
  worker();
  if (loaded_.contains(point)) return;
  if (!facts_[point].made) facts_[point].made = callbacks_.make({point}).at(0);
  if (!facts_[point].made->failure.empty())
    throw CannotDo(facts_[point].made->failure, facts_[point].made->unavailable);
  ask({{"do", "load"}, {"name", nameOf(point)}, {"package", facts_[point].made->package}}, setting_.patience,
      [](const Json&) { return 0; });
  loaded_.insert(point);
}

std::vector<Samples> LiveLab::sample(const std::vector<size_t>& points, int rounds,
                                     const std::function<void(const std::vector<Samples>&)>& each) {
  for (const size_t point : points) load(point);
  // A request takes whole rounds; one round while the length of a round is unknown.
  const double round = 2 * std::max(callSeconds_, setting_.sampleSeconds) * double(points.size());
  const int most = callSeconds_ ? int(std::clamp(kRequestSeconds / round, 1.0, double(rounds))) : 1;
  const double begin = secondsNow();
  std::vector<Samples> all(points.size());
  for (int first = 0; first < rounds; first += most) {
    const auto part = sampleSome(points, first, std::min(most, rounds - first));
    each(part);
    for (size_t i = 0; i < all.size(); ++i) all[i].insert(all[i].end(), part[i].begin(), part[i].end());
    if (secondsNow() - begin > kRequestSeconds && stopped()) break;
  }
  return all;
}

std::vector<Samples> LiveLab::sampleSome(const std::vector<size_t>& points, int first, int rounds) {
  std::vector<std::string> names;
  for (const size_t point : points) names.push_back(nameOf(point));
  const double expected =
      20 * std::max(callSeconds_, setting_.sampleSeconds) * double(rounds + kUntimed) * double(points.size());
  return ask(
      {{"do", "sample"}, {"names", names}, {"first", first}, {"rounds", rounds}},
      std::max(kLeastPatience, expected) + quietPatience_ + (callSeconds_ ? 0 : setting_.patience),
      [&](const Json& answer) {
        std::vector<Samples> samples;
        for (const Json& each : answer.at("samples")) samples.push_back(timesIn(each));
        const auto wrong = [&](const Samples& each) { return each.size() != size_t(rounds); };
        if (samples.size() != points.size() || std::any_of(samples.begin(), samples.end(), wrong))
          throw std::length_error("samples");
        const int64_t disturbed = countIn(answer.at("disturbed"));
        const Json& loops = answer.at("loops");
        const measure::Loops measured{numberIn(loops.at(0), 0, kForever), numberIn(loops.at(1), 0, kForever)};
        const double patience = numberIn(answer.at("patience"), -kForever, quietPatience_);
        disturbed_ += disturbed, loops_ = measure::fastest(loops_, measured), quietPatience_ = patience;
        return samples;
      });
}

/// Throws if the default cannot be loaded: without it no comparison is possible. A lost device is detected
/// here.
void LiveLab::loadDefault() {
  std::string reason;
  try {
    return load(landscape_.byDefault());
  } catch (const Worker::Ended& ended) {
    reason = reasonOf(ended);
  } catch (const CannotDo& refusal) {
    reason = refusal.what();
  }
  throw std::runtime_error("the default of " + setting_.task.problem.text() +
                           " ran before and does not any more, so the device may be gone: " + reason);
}

/// Runs the gate. A candidate that fails is never timed.
Screened LiveLab::judged(size_t point) {
  Screened result{.point = point};
  Facts& facts = facts_[point];
  if (!facts.made->failure.empty())
    return result.status = Status::Refused, result.reason = facts.made->failure, result;
  const auto [first, isNew] = byObject_.try_emplace(facts.made->object, point);
  if (!isNew && first->second != point) {
    result.status = Status::Duplicate;
    result.reason = "the same code as " + landscape_[first->second].schedule;
    return result;
  }
  load(point);
  const double begin = secondsNow();
  const auto failure = ask({{"do", "gate"}, {"name", nameOf(point)}}, limit(), [&](const Json& gate) {
    facts.trials = countIn(gate.at("trials")), facts.worst = numberIn(gate.at("worst"), 0, kForever);
    return gate.at("failure").get<std::string>();
  });
  longestGate_ = std::max(longestGate_, secondsNow() - begin);
  if (failure.empty()) return result;
  worker_.reset();  // a kernel with wrong results may have written anywhere in the process
  result.status = Status::Wrong, result.reason = failure;
  return result;
}

Screened LiveLab::measure(size_t point) {
  Screened result{.point = point};
  bool mayPass = false;
  try {
    result = judged(point);
    mayPass = facts_[point].made->unavailable;
    if (result.status == Status::Ok) {
      if (point != landscape_.byDefault()) loadDefault();
      std::vector<Samples> samples = sample({point, landscape_.byDefault()}, kScreenRounds);
      result.samples = std::move(samples[0]), result.reference = std::move(samples[1]);
      if (point == landscape_.byDefault())
        callSeconds_ = measure::median(result.samples), result.reference = result.samples;
    }
  } catch (const Worker::Ended& ended) {
    result.status = ended.hung ? Status::Hung : Status::Crashed;
    result.reason = reasonOf(ended);
  } catch (const CannotDo& refusal) {
    result.status = Status::Refused, result.reason = refusal.what(), mayPass = refusal.mayPass;
  }
  if (mayPass) return result;  // a record would keep the candidate out of later searches
  Record record = recordOf(point);
  record.stage = "screen", record.status = result.status, record.reason = result.reason;
  record.samples = result.samples, record.reference = result.reference;
  keep(record);
  return result;
}

std::vector<Screened> LiveLab::screen(const std::vector<size_t>& points) {
  std::vector<Screened> results;
  makeAll(points);
  for (const size_t point : points) {
    if (stopped() && !results.empty()) break;
    const auto known = remembered_.find(point);
    results.push_back(known == remembered_.end() ? measure(point) : known->second);
  }
  if (callbacks_.journal) callbacks_.journal->sync();
  return results;
}

std::vector<size_t> LiveLab::able(const std::vector<size_t>& points, int rounds) {
  std::vector<size_t> list;
  for (const size_t point : points) {
    if (failed_.contains(point)) continue;
    Record record = recordOf(point);
    record.stage = "race";
    bool mayPass = false;
    try {
      if (rounds) worker_.reset(), sample({point}, rounds);
      load(point);
      list.push_back(point);
      continue;
    } catch (const Worker::Ended& ended) {
      record.status = ended.hung ? Status::Hung : Status::Crashed, record.reason = reasonOf(ended);
    } catch (const CannotDo& refusal) {
      record.status = Status::Refused, record.reason = refusal.what(), mayPass = refusal.mayPass;
    }
    failed_[point] = record.status;
    if (!mayPass) keep(record);
  }
  return list;
}

std::vector<Samples> LiveLab::race(const std::vector<size_t>& points, int rounds) {
  std::vector<size_t> running = able(points);
  // Samples are recorded at once, so that a process that is killed loses one request.
  const auto record = [&](const std::vector<Samples>& part) {
    const auto byDefault = std::find(running.begin(), running.end(), landscape_.byDefault());
    if (byDefault == running.end()) return;
    for (size_t i = 0; i < running.size(); ++i) {
      Record record = recordOf(running[i]);
      record.stage = "race", record.samples = part[i];
      record.reference = part[size_t(byDefault - running.begin())];
      keep(record);
    }
  };
  std::vector<Samples> taken;
  try {
    taken = sample(running, rounds, record);
  } catch (const Worker::Ended&) {
    // Some candidate ended the worker: try each alone, then race the remaining ones.
    running = able(running, rounds);
    try {
      taken = sample(running, rounds, record);
    } catch (const Worker::Ended& ended) {
      throw std::runtime_error("a race of " + setting_.task.text() +
                               " ends its worker, though each candidate runs alone: " + reasonOf(ended));
    }
  }
  std::vector<Samples> results(points.size());
  for (size_t i = 0; i < running.size(); ++i)
    results[size_t(std::find(points.begin(), points.end(), running[i]) - points.begin())] =
        std::move(taken[i]);
  if (callbacks_.journal) callbacks_.journal->sync();
  return results;
}

double LiveLab::copySeconds(int reads, int writes) {
  try {
    load(landscape_.byDefault());
    return ask({{"do", "copy"}, {"reads", reads}, {"writes", writes}}, setting_.patience + quietPatience_,
               [](const Json& answer) { return numberIn(answer.at("seconds"), 0, kForever); });
  } catch (const CannotDo&) {
    return 0;
  } catch (const Worker::Ended&) {
    return 0;
  }
}

Record LiveLab::recordOf(size_t point) const {
  Record record;
  record.task = setting_.task, record.device = setting_.device, record.toolchain = setting_.toolchain;
  record.generator = landscape_[point].generator, record.schedule = landscape_[point].schedule;
  if (const auto at = facts_.find(point); at != facts_.end()) {
    if (at->second.made) record.object = at->second.made->object;
    record.trials = at->second.trials, record.worst = at->second.worst;
  }
  record.session = setting_.session, record.number = number_++, record.stamp = setting_.stamp;
  return record;
}

void LiveLab::keep(const Record& record) {
  if (callbacks_.journal) callbacks_.journal->append(record);
}

void LiveLab::conclude(const Outcome& outcome, const std::string& kind, const std::string& verdict) {
  const Decision& d = outcome.decision;
  Record record = recordOf(d.chosen);
  record.kind = kind, record.stage = "race";
  record.conclusion = conclusionOf(d);
  if (!verdict.empty()) record.conclusion->verdict = verdict;
  for (const Racer& racer : outcome.confirmation.empty() ? outcome.racers : outcome.confirmation) {
    if (racer.point == d.chosen) record.samples = racer.samples;
    if (racer.point == landscape_.byDefault()) record.reference = racer.samples;
  }
  keep(record);
  if (callbacks_.journal) callbacks_.journal->sync();
}

std::pair<const Record*, size_t> choiceOf(const Landscape& landscape, const std::vector<Record>& records,
                                          const Setting& setting) {
  std::pair<const Record*, size_t> best{nullptr, 0};
  for (const Record& record : records) {
    if (record.kind != "choice" || record.task != setting.task || record.device != setting.device ||
        record.toolchain != setting.toolchain)
      continue;
    const auto point = landscape.find(record.generator, record.schedule);
    if (point && (!best.first || newer(record, *best.first)) && reasonRejected(record, records).empty())
      best = {&record, *point};
  }
  return best;
}

Conclusion conclusionOf(const Decision& d) {
  return {d.tie ? "tie" : "won", d.ratio.value, d.ratio.low, d.ratio.high};
}

std::map<size_t, Screened> rememberedFrom(const Landscape& landscape, const std::vector<Record>& records,
                                          const Setting& setting) {
  std::map<size_t, Screened> remembered;
  std::map<size_t, const Record*> newest;
  for (const Record& record : records) {
    if (record.kind != "trial" || record.task != setting.task || record.device != setting.device ||
        record.toolchain != setting.toolchain)
      continue;
    const auto point = landscape.find(record.generator, record.schedule);
    if (!point) continue;
    if (record.status == Status::Ok && record.samples.empty()) continue;
    Screened& one = remembered[*point];
    one.point = *point, one.remembered = true;
    if (const Record*& last = newest[*point]; !last || newer(record, *last))
      last = &record, one.status = record.status, one.reason = record.reason;
    one.samples.insert(one.samples.end(), record.samples.begin(), record.samples.end());
    one.reference.insert(one.reference.end(), record.reference.begin(), record.reference.end());
  }
  return remembered;
}

}  // namespace normc::tune
