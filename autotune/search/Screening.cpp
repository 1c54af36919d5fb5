#include "autotune/search/Screening.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace normc::tune {
namespace {

constexpr int kWidest = 5;  ///< multiples of SearchOptions::leaders whose neighbours are measured
constexpr double kImproved = 0.995;
constexpr size_t kAnnounced = 16;  ///< candidates that are announced beyond the current batch
constexpr int kHeatRounds = 4;     ///< of the first heat
/// A prediction changes the expected time of a neighbour by this factor at most.
constexpr double kTrusted = 1.3;

}  // namespace

Stages stagesFor(double scale) {
  return scale > 1 ? Stages{.screening = 0.52, .heats = 0.62, .race = 0.8}
                   : Stages{.screening = 0.75, .heats = 0.75, .race = 0.9};
}

Screening::Screening(const Landscape& landscape, Lab& lab, const SearchOptions& options, Outcome& outcome)
    : landscape_(landscape),
      lab_(lab),
      options_(options),
      outcome_(outcome),
      stages_(stagesFor(lab.scale())) {}

bool Screening::measureDefault() {
  lab_.endBy(std::numeric_limits<double>::infinity());
  lab_.announce(options_.exhaustive ? landscape_.ranked() : seedsOf(landscape_, options_));
  for (Screened& one : lab_.screen({landscape_.byDefault()})) {
    seen_.insert(one.point);
    if (one.status != Status::Ok) outcome_.failure = one.reason;
    outcome_.screened.push_back(std::move(one));
  }
  if (outcome_.screened.empty() && outcome_.failure.empty()) {
    outcome_.failure = "it was interrupted before the default was measured";
    outcome_.interrupted = true;
  }
  total_ = outcome_.screened.size();
  return outcome_.failure.empty();
}

void Screening::run() {
  lab_.endBy(options_.until(stages_.screening));
  screenAll(options_.exhaustive ? landscape_.ranked() : seedsOf(landscape_, options_));
  if (!options_.exhaustive) climb();
  lab_.announce({});
  runHeats();
}

bool Screening::timeLeft(double share) const { return lab_.now() < options_.until(share); }

bool Screening::mayScreen() {
  if (lab_.stopped()) return false;
  // one candidate after the default, however short the budget
  const double end = stages_.screening * options_.budget;
  if (outcome_.screened.size() <= 1 || options_.exhaustive || lab_.now() + candidateSeconds_ < end)
    return true;
  outcome_.budgetSpent = true;
  return false;
}

/// Announces the rest of a queue, and then what follows if nothing is found until its end.
void Screening::announce(const std::vector<size_t>& queue, size_t begin) {
  std::vector<size_t> next(queue.begin() + long(begin),
                           queue.begin() + long(std::min(queue.size(), begin + kAnnounced)));
  if (!options_.exhaustive && next.size() < kAnnounced) {
    std::vector<size_t> guess = frontier(size_t(options_.leaders) * size_t(kWidest));
    if (guess.empty()) guess = hopeful();
    for (const size_t point : guess)
      if (next.size() < kAnnounced) next.push_back(point);
  }
  lab_.announce(next);
}

/// Screens the points of the list that are new, batch by batch. Returns true if the leader improved.
bool Screening::screenAll(const std::vector<size_t>& points) {
  std::vector<size_t> fresh;
  for (const size_t point : points)
    if (seen_.insert(point).second) fresh.push_back(point);
  total_ = outcome_.screened.size() + fresh.size();
  const double ratio = leaders(1).front()->ratio();
  for (size_t begin = 0; begin < fresh.size(); begin += size_t(options_.batch)) {
    if (!mayScreen()) break;
    const auto end = std::min(fresh.size(), begin + size_t(options_.batch));
    announce(fresh, end);
    const double start = lab_.now();
    const size_t before = outcome_.screened.size();
    for (Screened& one : lab_.screen({fresh.begin() + long(begin), fresh.begin() + long(end)}))
      outcome_.screened.push_back(std::move(one));
    candidateSeconds_ = (lab_.now() - start) / double(std::max<size_t>(outcome_.screened.size() - before, 1));
    const Screened& best = *leaders(1).front();
    options_.progress({outcome_.screened.size(), total_, best.point, best.ratio(), lab_.now(), "screening"});
  }
  return leaders(1).front()->ratio() < ratio * kImproved;
}

/// Screens neighbours of the leaders. When all of those are known it takes more leaders, because a few rounds
/// of one process may have ranked the best one lower, and then what the model takes for fast; an improvement
/// leads back to the first ones.
void Screening::climb() {
  for (int width = 1; mayScreen();) {
    std::vector<size_t> next = frontier(size_t(options_.leaders) * size_t(width));
    if (next.empty() && width < kWidest) {
      ++width;
      continue;
    }
    if (next.empty()) next = hopeful();
    if (next.empty()) return;
    next.resize(std::min(next.size(), size_t(options_.batch)));
    if (screenAll(next)) width = 1;
  }
}

/// Returns the points that are not known yet and are predicted to be nearly as fast as the best prediction.
std::vector<size_t> Screening::hopeful() const {
  std::vector<size_t> points;
  const double most = kHopeful * landscape_[landscape_.ranked().front()].predicted;
  for (const size_t point : landscape_.ranked())
    if (!seen_.contains(point) && landscape_[point].predicted <= most) points.push_back(point);
  return points;
}

/// Returns the neighbours of so many leaders of each space that are not known yet; first those that are
/// expected to be fastest: by the time of the leader, and by how much the predictions of both differ.
std::vector<size_t> Screening::frontier(size_t ofEach) const {
  std::map<size_t, double> expected;
  std::map<int, size_t> taken;  // from each space
  for (const Screened* leader : leaders(outcome_.screened.size())) {
    if (taken[landscape_[leader->point].at.at(0)]++ >= ofEach) continue;
    for (const size_t point : landscape_.neighbours(leader->point)) {
      if (seen_.contains(point)) continue;
      const double step = landscape_[point].predicted / landscape_[leader->point].predicted;
      const double ratio = leader->ratio() * std::clamp(step, 1 / kTrusted, kTrusted);
      double& least = expected.emplace(point, ratio).first->second;
      least = std::min(least, ratio);
    }
  }
  std::vector<size_t> points;
  for (const auto& [point, ratio] : expected) points.push_back(point);
  std::sort(points.begin(), points.end(),
            [&](size_t a, size_t b) { return std::pair(expected.at(a), a) < std::pair(expected.at(b), b); });
  return points;
}

/// Measures the better half again with more rounds, and then the better half of that, as long as more are
/// left than can race.
void Screening::runHeats() {
  if (lab_.scale() <= 1 || options_.exhaustive || options_.keepAll || outcome_.screened.size() < 2) return;
  lab_.endBy(stages_.heats * options_.budget);
  size_t left = leaders(outcome_.screened.size()).size();
  for (int rounds = kHeatRounds; left > size_t(options_.finalists) + 1; rounds *= 2) {
    if (lab_.stopped() || !timeLeft(stages_.heats)) return;
    left = std::max(size_t(options_.finalists) + 1, (left + 1) / 2);
    std::vector<size_t> points{landscape_.byDefault()};
    for (const Screened* one : leaders(left))
      if (one->point != landscape_.byDefault()) points.push_back(one->point);
    const std::vector<Samples> samples = lab_.heat(points, rounds);
    for (Screened& one : outcome_.screened) {
      const auto at = std::find(points.begin(), points.end(), one.point);
      if (at == points.end()) continue;
      const Samples& more = samples[size_t(at - points.begin())];
      if (more.size() != samples[0].size()) continue;  // it failed, and fails again in its race
      one.samples.insert(one.samples.end(), more.begin(), more.end());
      one.reference.insert(one.reference.end(), samples[0].begin(), samples[0].end());
    }
  }
}

bool Screening::rejected(size_t point) const {
  return std::any_of(outcome_.screened.begin(), outcome_.screened.end(),
                     [&](const Screened& one) { return one.point == point && one.status != Status::Ok; });
}

std::vector<const Screened*> Screening::leaders(size_t count) const {
  std::vector<const Screened*> list;
  for (const Screened& one : outcome_.screened)
    if (one.status == Status::Ok) list.push_back(&one);
  std::map<size_t, double> ratio;
  for (const Screened* one : list) ratio[one->point] = one->ratio();
  std::sort(list.begin(), list.end(), [&](const Screened* a, const Screened* b) {
    const double first = ratio.at(a->point), second = ratio.at(b->point);
    return first != second ? first < second : landscape_.simpler(a->point, b->point);
  });
  if (list.size() > count) list.resize(count);
  return list;
}

}  // namespace normc::tune
