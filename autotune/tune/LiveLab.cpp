#include "autotune/tune/LiveLab.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "autotune/measure/Clock.h"
#include "autotune/measure/Machine.h"

namespace normc::tune {
namespace {

/// Rounds of a candidate that is screened; fewer where heats follow.
constexpr int kScreenRounds = 5, kFirstRounds = 3;
constexpr int kUntimed = 2;  ///< untimed calls before a request's first sample, in rounds
constexpr double kLeastPatience = 5;
/// Approximate seconds of one request for samples, which limits the delay of a stop.
constexpr double kRequestSeconds = 2;
constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr int kMostMakers = 16;

/// The time of a call of the search is over.
struct OutOfTime {};

/// Returns the processors that a task leaves to other threads while it is timed.
int sparesOf(const Setting& setting, int processors) {
  const bool onCpu = setting.device.kind == "cpu";
  return std::clamp(processors - (onCpu ? int(setting.task.threads) : 1), 0, kMostMakers);
}

}  // namespace

LiveLab::LiveLab(const Landscape& landscape, const Setting& setting, Callbacks callbacks,
                 std::map<size_t, Screened> remembered)
    : landscape_(landscape),
      setting_(setting),
      callbacks_(std::move(callbacks)),
      remembered_(std::move(remembered)),
      client_(setting, callbacks_.worker),
      begin_(setting.begun ? setting.begun : measure::secondsNow()),
      processors_(std::min(measure::thisMachine().processors, kMostMakers)),
      makeAhead_(callbacks_.make, sparesOf(setting, processors_),
                 std::max(1, processors_ - sparesOf(setting, processors_))) {
  remembered_.erase(landscape_.byDefault());
}
LiveLab::~LiveLab() = default;

double LiveLab::now() { return measure::secondsNow() - begin_; }

double LiveLab::scale() { return double(setting_.task.rows) / double(screenRows()); }

double LiveLab::limit() {
  const double usual = longestGate_ == 0
                           ? setting_.patience
                           : std::min(setting_.patience, std::max(kLeastPatience, 10 * longestGate_));
  return std::min(usual, std::max(left(), 0.0));
}

void LiveLab::announce(const std::vector<size_t>& points) {
  announced_.clear();
  for (const size_t point : points)
    if (!facts_[point].made && !remembered_.contains(point)) announced_.push_back(point);
  makeAhead_.announce(announced_);
}

bool LiveLab::make(size_t point) {
  std::optional<BuiltCandidate>& made = facts_[point].made;
  if (!made) made = makeAhead_.take(point, left());
  return made.has_value();
}

void LiveLab::load(size_t point) {
  client_.start();
  if (client_.isLoaded(point)) return;
  std::optional<BuiltCandidate>& made = facts_[point].made;
  if (!made) made = makeAhead_.take(point, kForever);
  if (!made->failure.empty()) throw CannotDo(made->failure, made->unavailable);
  client_.load(point, *made);
}

/// Returns about how long a call of the default takes with the present rows; 0 if it is not known.
double LiveLab::callSeconds() const { return secondsOfRow_ * double(client_.rows()); }

std::vector<Samples> LiveLab::sample(const std::vector<size_t>& points, int rounds, const Each& each) {
  if (points.empty()) return {};  // none runs
  for (const size_t point : points) load(point);
  makeAhead_.settle();
  // A request takes whole rounds; one round while the length of a round is unknown.
  const bool known = callSeconds() > 0;
  const double round = std::max(callSeconds(), setting_.sampleSeconds) * double(points.size());
  const int most = known ? int(std::clamp(kRequestSeconds / (2 * round), 1.0, double(rounds))) : 1;
  const double begin = measure::secondsNow();
  std::vector<Samples> all(points.size());
  for (int first = 0; first < rounds;) {
    const int wanted = std::min(most, rounds - first);
    const double patience =
        std::max(kLeastPatience, 20 * round * double(wanted + kUntimed)) + (known ? 0 : setting_.patience);
    const double rest = left();
    const double quiet = std::min(setting_.quietPatience, setting_.quietShare * now()) - client_.waited();
    const auto part = client_.sample(points, first, wanted, patience, std::max(quiet, 0.0),
                                     std::isfinite(rest) ? std::optional(std::max(rest, 0.0)) : std::nullopt);
    each(part);
    for (size_t i = 0; i < all.size(); ++i) all[i].insert(all[i].end(), part[i].begin(), part[i].end());
    first += int(part[0].size());
    if (int(part[0].size()) < wanted || left() <= 0) break;
    if (measure::secondsNow() - begin > kRequestSeconds && stopped()) break;
  }
  return all;
}

/// Throws if the default cannot be loaded: without it no comparison is possible. A lost device is detected
/// here.
void LiveLab::loadDefault() {
  if (const auto failure = attempt([&] { load(landscape_.byDefault()); }))
    throw std::runtime_error(
        "the default of " + setting_.task.problem.text() +
        " ran before and does not any more, so the device may be gone: " + failure->reason);
}

std::string LiveLab::askGate(size_t point, GatePart part) {
  Facts& facts = facts_[point];
  const double begin = measure::secondsNow();
  const GateAnswer verdict = client_.gate(point, part, limit());
  longestGate_ = std::max(longestGate_, measure::secondsNow() - begin);
  facts.trials += verdict.trials;
  facts.worst = std::max(facts.worst, verdict.worst);
  facts.whole = part != GatePart::First;
  return verdict.failure;
}

/// Runs the gate. A candidate that fails is never timed.
Screened LiveLab::judged(size_t point) {
  const Facts& facts = facts_[point];
  if (!facts.made->failure.empty())
    return {.point = point, .status = Status::Refused, .reason = facts.made->failure};
  const auto [first, isNew] = byObject_.try_emplace(facts.made->object, point);
  if (!isNew && first->second != point)
    return {.point = point,
            .status = Status::Duplicate,
            .reason = "the same code as " + landscape_[first->second].schedule};
  load(point);
  const bool byDefault = point == landscape_.byDefault();
  Screened result{.point = point};
  result.reason = askGate(point, byDefault ? GatePart::All : GatePart::First);
  if (!result.reason.empty()) result.status = Status::Wrong;
  return result;
}

void LiveLab::timeWithDefault(Screened& result) {
  const size_t byDefault = landscape_.byDefault();
  if (result.point != byDefault) loadDefault();
  const int rounds = scale() > 1 ? kFirstRounds : kScreenRounds;
  std::vector<Samples> samples = sample({result.point, byDefault}, rounds);
  result.samples = std::move(samples[0]);
  result.reference = std::move(samples[1]);
  if (result.point != byDefault) return;
  secondsOfRow_ = measure::median(result.samples) / double(client_.rows());
  result.reference = result.samples;
}

Screened LiveLab::measure(size_t point) {
  Screened result{.point = point};
  const auto failure = attempt([&] {
    result = judged(point);
    result.mayPass = facts_[point].made->unavailable;
    if (result.status == Status::Ok) timeWithDefault(result);
  });
  if (failure) {
    if (failure->status == Status::Hung && left() <= 0) throw OutOfTime();
    result.status = failure->status;
    result.reason = failure->reason;
    result.mayPass = failure->mayPass;
  }
  if (result.mayPass) return result;  // a record would keep the candidate out of later searches
  Record record = recordOf(point);
  record.stage = "screen";
  record.status = result.status;
  record.reason = result.reason;
  record.samples = result.samples;
  record.reference = result.reference;
  keep(record);
  return result;
}

std::vector<Screened> LiveLab::screen(const std::vector<size_t>& points) {
  std::vector<Screened> results;
  client_.setRows(screenRows());
  std::vector<size_t> next;
  for (const size_t point : points)
    if (!facts_[point].made && !remembered_.contains(point)) next.push_back(point);
  const std::vector<size_t> now = next;
  next.insert(next.end(), announced_.begin(), announced_.end());
  makeAhead_.announce(next);
  if (sparesOf(setting_, processors_) == 0)  // all are made before the first is timed
    for (const size_t point : now)
      if (!stopped()) make(point);
  try {
    for (const size_t point : points) {
      exempt_ = results.empty();
      if (!exempt_ && (stopped() || left() <= 0)) break;
      const auto known = remembered_.find(point);
      if (known == remembered_.end() && !make(point)) break;
      results.push_back(known == remembered_.end() ? measure(point) : known->second);
    }
  } catch (const OutOfTime&) {
    client_.endWorker();
  }
  exempt_ = false;
  if (callbacks_.journal) callbacks_.journal->sync();
  return results;
}

void LiveLab::fail(size_t point, const CandidateFailure& failure) {
  failed_[point] = {
      .point = point, .status = failure.status, .reason = failure.reason, .mayPass = failure.mayPass};
  if (failure.mayPass) return;
  Record record = recordOf(point);
  record.stage = "race";
  record.status = failure.status;
  record.reason = failure.reason;
  keep(record);
}

/// Runs the trials that were left out when the candidates were screened. Returns those that passed; others
/// are recorded as failed, unless the time is over.
std::vector<size_t> LiveLab::finishGate(const std::vector<size_t>& points) {
  std::vector<size_t> passed;
  for (const size_t point : points) {
    if (failed_.contains(point)) continue;
    const bool mayWait = point != landscape_.byDefault() && !facts_[point].whole;
    if (mayWait && (left() <= 0 || !make(point))) continue;
    std::string wrong;
    const auto failure = attempt([&] {
      if (facts_[point].whole) return;
      load(point);
      wrong = askGate(point, GatePart::Rest);
    });
    if (failure && failure->status == Status::Hung && left() <= 0) continue;
    if (failure)
      fail(point, *failure);
    else if (!wrong.empty())
      fail(point, {Status::Wrong, wrong});
    else
      passed.push_back(point);
  }
  return passed;
}

std::vector<size_t> LiveLab::able(const std::vector<size_t>& points, int rounds) {
  std::vector<size_t> list;
  for (const size_t point : points) {
    if (failed_.contains(point)) continue;
    const auto failure = attempt([&] {
      if (rounds) {
        client_.endWorker();
        sample({point}, rounds);
      }
      load(point);
    });
    if (failure)
      fail(point, *failure);
    else
      list.push_back(point);
  }
  return list;
}

std::vector<Samples> LiveLab::timed(const std::vector<size_t>& points, int rounds, const std::string& stage) {
  std::vector<size_t> running = able(points);
  // Samples are recorded at once, so that a process that is killed loses one request.
  const auto record = [&](const std::vector<Samples>& part) {
    const auto byDefault = std::find(running.begin(), running.end(), landscape_.byDefault());
    if (byDefault == running.end()) return;
    for (size_t i = 0; i < running.size(); ++i) {
      Record record = recordOf(running[i]);
      record.stage = stage;
      record.samples = part[i];
      record.reference = part[size_t(byDefault - running.begin())];
      keep(record);
    }
  };
  std::vector<Samples> taken;
  const auto tryRace = [&] { return attempt([&] { taken = sample(running, rounds, record); }); };
  if (tryRace()) {
    running = able(running, rounds);  // each alone, then a race of those that run
    if (const auto failure = tryRace())
      throw std::runtime_error("a race of " + setting_.task.text() +
                               " cannot be measured, though each candidate runs alone: " + failure->reason);
  }
  std::vector<Samples> results(points.size());
  for (size_t i = 0; i < running.size(); ++i)
    results[size_t(std::find(points.begin(), points.end(), running[i]) - points.begin())] =
        std::move(taken[i]);
  if (callbacks_.journal) callbacks_.journal->sync();
  return results;
}

std::vector<Samples> LiveLab::heat(const std::vector<size_t>& points, int rounds) {
  client_.setRows(screenRows());
  return timed(points, rounds, "screen");
}

std::vector<Samples> LiveLab::race(const std::vector<size_t>& points, int rounds) {
  std::vector<size_t> missing;  // those that an earlier session screened
  for (const size_t point : points)
    if (!facts_[point].made) missing.push_back(point);
  makeAhead_.announce(missing);
  const std::vector<size_t> judged = finishGate(points);
  const double begin = now();
  client_.setRows(setting_.task.rows);
  if (renewing_) {
    client_.renew();
    renewing_ = false;
  }
  std::vector<Samples> taken = timed(judged, rounds, "race"), samples(points.size());
  double measured = 0;
  for (size_t i = 0; i < judged.size(); ++i) {
    for (const double seconds : taken[i]) measured += std::max(seconds, setting_.sampleSeconds);
    samples[size_t(std::find(points.begin(), points.end(), judged[i]) - points.begin())] =
        std::move(taken[i]);
  }
  startSeconds_ = std::max(0.0, now() - begin - measured);
  return samples;
}

double LiveLab::copySeconds(const measure::Traffic& traffic, double seconds) {
  client_.setRows(setting_.task.rows);
  double taken = 0;  // stays 0 where the attempt fails
  attempt([&] {
    load(landscape_.byDefault());
    taken = client_.copy(traffic, seconds);
  });
  return taken;
}

Record LiveLab::recordOf(size_t point) const {
  Record record;
  record.task = setting_.task;
  record.device = setting_.device;
  record.toolchain = setting_.toolchain;
  record.generator = landscape_[point].generator;
  record.schedule = landscape_[point].schedule;
  if (const auto at = facts_.find(point); at != facts_.end()) {
    if (at->second.made) record.object = at->second.made->object;
    record.trials = at->second.trials;
    record.worst = at->second.worst;
  }
  if (client_.rows() != setting_.task.rows) record.screenedRows = client_.rows();
  record.session = setting_.session;
  record.stamp = setting_.stamp;
  return record;
}

void LiveLab::keep(Record record) {
  record.number = number_++;
  if (callbacks_.journal) callbacks_.journal->append(record);
}

void LiveLab::conclude(const Outcome& outcome, std::optional<Verdict> again) {
  const Decision& d = outcome.decision;
  Record record = recordOf(d.chosen);
  record.kind = again ? RecordKind::Verify : RecordKind::Choice;
  record.stage = "race";
  record.screenedRows = 0;
  record.conclusion = conclusionOf(d);
  if (again) record.conclusion->verdict = *again;
  for (const Racer& racer : outcome.confirmation.empty() ? outcome.racers : outcome.confirmation) {
    if (racer.point == d.chosen) record.samples = racer.samples;
    if (racer.point == landscape_.byDefault()) record.reference = racer.samples;
  }
  keep(record);
  if (callbacks_.journal) callbacks_.journal->sync();
}

}  // namespace normc::tune
