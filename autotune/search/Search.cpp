#include "autotune/search/Search.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace normc::tune {
namespace {

/// The share of the budget that screening may take.
constexpr double kScreening = 0.65;
constexpr int kBlock = 10;          ///< rounds between two evaluations of a race, all in one process
constexpr int kLooks = 3 * kBlock;  ///< rounds before a schedule may leave the race
/// The share of the budget after which a race ends, so that its winner can be confirmed.
constexpr double kRaceOver = 0.85;
constexpr int kWinners = 4;  ///< the most winners that are confirmed, one after the other
/// The share of the remaining time that the first rounds of a race may take; the least seconds that a sample
/// takes.
constexpr double kRacing = 0.5, kSample = 4e-4;
/// Relative to the best prediction: up to kLikely another kind is likely to be as fast, up to kHopeful a
/// random point is worth its time.
constexpr double kLikely = 1.25, kHopeful = 1.5;
constexpr int kOtherFamily = 2;  ///< words in which two kinds differ that count as different ideas
constexpr int kTries = 100;      ///< draws for a kind that is new, and as many for any

class Searching {
 public:
  Searching(const Landscape& landscape, Lab& lab, const SearchOptions& options)
      : landscape_(landscape), lab_(lab), options_(options) {}

  Outcome run() {
    if (screenDefault()) {
      screenAll(options_.exhaustive ? landscape_.ranked() : seedsOf(landscape_, options_));
      if (!options_.exhaustive) climb();
      race();
      if (outcome_.failure.empty()) settle();
    }
    outcome_.complete = outcome_.failure.empty() && !lab_.stopped();
    outcome_.seconds = lab_.now();
    return std::move(outcome_);
  }

 private:
  bool screenDefault() {
    for (Screened& one : lab_.screen({landscape_.byDefault()})) {
      seen_.insert(one.point);
      if (one.status != Status::Ok) outcome_.failure = one.reason;
      outcome_.screened.push_back(std::move(one));
    }
    if (outcome_.screened.empty() && outcome_.failure.empty())
      interrupt("it was interrupted before the default was measured");
    return outcome_.failure.empty();
  }

  void interrupt(const char* when) { outcome_.failure = when, outcome_.interrupted = true; }

  bool mayScreen() {
    if (lab_.stopped()) return false;
    // one batch after the default, however short the budget
    const bool first = outcome_.screened.size() <= 1;
    if (first || timeLeft(kScreening)) return true;
    outcome_.budgetSpent = true;
    return false;
  }

  /// Screens the points of the list that are new, batch by batch. Returns true if the leader improved.
  bool screenAll(const std::vector<size_t>& points) {
    std::vector<size_t> fresh;
    for (const size_t point : points)
      if (seen_.insert(point).second) fresh.push_back(point);
    total_ = outcome_.screened.size() + fresh.size();
    const double before = leaders(1).front()->ratio();
    for (size_t begin = 0; begin < fresh.size(); begin += size_t(options_.batch)) {
      if (!mayScreen()) break;
      const auto end = std::min(fresh.size(), begin + size_t(options_.batch));
      for (Screened& one : lab_.screen({fresh.begin() + long(begin), fresh.begin() + long(end)}))
        outcome_.screened.push_back(std::move(one));
      report("screening");
    }
    return leaders(1).front()->ratio() < before * 0.995;
  }

  bool timeLeft(double share) { return options_.exhaustive || lab_.now() < share * options_.budget; }

  /// Screens the neighbours of the leaders, and then of the new leaders. After a round without improvement it
  /// takes more leaders, because a few rounds of one process may have ranked the best one lower. It ends
  /// after three rounds without improvement.
  void climb() {
    for (int idle = 0; idle < 3 && mayScreen();) {
      std::vector<size_t> next;
      for (const Screened* leader : leaders(size_t(options_.leaders) * size_t(1 + idle)))
        for (const size_t point : landscape_.neighbours(leader->point))
          if (!seen_.contains(point)) next.push_back(point);
      if (next.empty()) return;
      idle = screenAll(next) ? 0 : idle + 1;
    }
  }

  bool rejected(size_t point) const {
    return std::any_of(outcome_.screened.begin(), outcome_.screened.end(),
                       [&](const Screened& one) { return one.point == point && one.status != Status::Ok; });
  }

  /// Returns the fastest correct candidates so far.
  std::vector<const Screened*> leaders(size_t count) const {
    std::vector<const Screened*> list;
    for (const Screened& one : outcome_.screened)
      if (one.status == Status::Ok) list.push_back(&one);
    std::sort(list.begin(), list.end(), [&](const Screened* a, const Screened* b) {
      const double first = a->ratio(), second = b->ratio();
      return first != second ? first < second : landscape_.simpler(a->point, b->point);
    });
    if (list.size() > count) list.resize(count);
    return list;
  }

  /// Returns the number of finalists. Screening has few rounds, so the order of close candidates is chance:
  /// as many enter the race as there is time for.
  size_t finalists() {
    const double sample = std::max(kSample, measure::median(outcome_.screened.front().samples));
    const double left = std::max(0.0, options_.budget - lab_.now());
    const double room =
        options_.exhaustive ? options_.mostFinalists : kRacing * left / (options_.leastRounds * sample);
    const int most = std::max(options_.finalists, options_.mostFinalists);
    return size_t(std::clamp(room, double(options_.finalists), double(most)));
  }

  void race() {
    std::vector<size_t> points{landscape_.byDefault()};
    const auto enter = [&](size_t point) {
      if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
    };
    if (options_.incumbent && !rejected(*options_.incumbent)) enter(*options_.incumbent);
    for (const Screened* leader : leaders(finalists() + 1)) enter(leader->point);
    for (const size_t point : points) outcome_.racers.push_back({point, {}});
    int rounds = 0;
    for (; rounds < options_.mostRounds && (rounds < options_.leastRounds || timeLeft(kRaceOver));
         rounds += kBlock) {
      if (lab_.stopped() && rounds > 0) break;
      if (outcome_.racers.size() == 1 && rounds > 0) break;
      lab_.renew();
      runBlock();
      if (!outcome_.failure.empty()) return;
      if (rounds == 0 && lab_.stopped() && outcome_.racers.front().samples.size() < size_t(kBlock))
        return interrupt("it was interrupted in the first rounds of its race");
      if (rounds + kBlock >= kLooks && !options_.keepAll) dropSlow();
      report("racing");
    }
    outcome_.budgetSpent |= rounds < options_.mostRounds && outcome_.racers.size() > 1;
  }

  /// Decides, and confirms the winner. If less than half of its gain is confirmed, and the rest was luck with
  /// addresses, the next one is tried, while time is left. A gain that is only a little too small remains a
  /// tie: another attempt at the same would decide by chance.
  void settle() {
    const double slack = options_.confirmations > 0 ? kSecondLook : 0;
    std::vector<Racer> racers = outcome_.racers;
    for (int winner = 0; winner < kWinners; ++winner) {
      const Decision decision = decide(landscape_, racers, options_.incumbent, slack);
      if (winner == 0) outcome_.decision = decision;
      if (decision.tie) return;
      outcome_.decision.chosen = decision.chosen, outcome_.decision.tie = false,
      outcome_.decision.ratio = decision.ratio;
      const double gain = confirm();
      if (!outcome_.failure.empty() || !outcome_.decision.tie || gain > (1 - decision.ratio.value) / 2)
        return;
      if (lab_.stopped() || !timeLeft(1)) return;
      std::erase_if(racers, [&](const Racer& racer) { return racer.point == decision.chosen; });
    }
  }

  /// The leader was selected because it was in front, so its ratio is biased. It is measured again by new
  /// processes; only that decides. Returns the gain that they found.
  double confirm() {
    const Decision won = outcome_.decision;
    std::vector<Racer>& pair = outcome_.confirmation;
    pair = {{landscape_.byDefault(), {}}, {won.chosen, {}}};
    Samples each;
    const auto another = [&](int count) {
      if (lab_.stopped() || count >= options_.mostConfirmations) return false;
      return count < options_.confirmations ||
             (timeLeft(1) && undecided(landscape_, won, each, options_.incumbent));
    };
    for (int i = 0; another(i); ++i) {
      lab_.renew();
      const std::vector<Samples> block =
          lab_.race({landscape_.byDefault(), won.chosen}, options_.confirmingRounds);
      if (block.at(0).empty()) {
        outcome_.failure = "it failed in the race, after it had passed the gate";
        return 0;
      }
      if (block.at(1).empty()) {
        each = {2};  // a candidate that fails once is not chosen
        break;
      }
      if (lab_.stopped() && block[0].size() < size_t(options_.confirmingRounds)) break;
      for (size_t k = 0; k < 2; ++k)
        pair[k].samples.insert(pair[k].samples.end(), block[k].begin(), block[k].end());
      each.push_back(measure::medianRatio(block[1], block[0]));
      report("confirming");
    }
    if (options_.confirmations == 0) return 0;
    outcome_.decision = confirmed(landscape_, won, each, options_.incumbent);
    if (outcome_.decision.tie) pair.clear();
    return each.empty() ? 0 : 1 - std::accumulate(each.begin(), each.end(), 0.0) / double(each.size());
  }

  void runBlock() {
    std::vector<size_t> points;
    for (const Racer& racer : outcome_.racers) points.push_back(racer.point);
    const std::vector<Samples> block = lab_.race(points, kBlock);
    std::vector<Racer> left;
    for (size_t i = 0; i < points.size() && i < block.size(); ++i) {
      Racer& racer = outcome_.racers[i];
      racer.samples.insert(racer.samples.end(), block[i].begin(), block[i].end());
      if (!block[i].empty()) left.push_back(std::move(racer));
    }
    outcome_.racers = std::move(left);
    if (std::none_of(outcome_.racers.begin(), outcome_.racers.end(),
                     [&](const Racer& r) { return r.point == landscape_.byDefault(); }))
      outcome_.failure = "it failed in the race, after it had passed the gate";
  }

  /// Removes the schedules that are clearly slower than the leader. The default stays to the end.
  void dropSlow() {
    const Racer* leader = &outcome_.racers.front();
    for (const Racer& racer : outcome_.racers)
      if (measure::medianRatio(racer.samples, leader->samples) < 1) leader = &racer;
    const Samples best = leader->samples;
    std::erase_if(outcome_.racers, [&](const Racer& racer) {
      return racer.point != landscape_.byDefault() && clearlySlower(racer.samples, best, kBlock);
    });
  }

  void report(const char* phase) {
    const Screened* best = leaders(1).front();
    options_.progress({outcome_.screened.size(), total_, best->point, best->ratio(), lab_.now(), phase});
  }

  const Landscape& landscape_;
  Lab& lab_;
  const SearchOptions& options_;
  Outcome outcome_;
  std::set<size_t> seen_;
  size_t total_ = 0;
};

/// Returns the family distance of a point to the nearest of the list, at most kOtherFamily.
int familyDistanceToNearest(const Landscape& landscape, const std::vector<size_t>& list, size_t point) {
  int least = kOtherFamily;
  for (const size_t other : list) least = std::min(least, landscape.familyDistance(point, other));
  return least;
}

}  // namespace

std::vector<size_t> seedsOf(const Landscape& landscape, const SearchOptions& options) {
  std::vector<size_t> seeds{landscape.byDefault()};
  const auto add = [&](size_t point) {
    if (std::find(seeds.begin(), seeds.end(), point) != seeds.end()) return false;
    seeds.push_back(point);
    return true;
  };
  if (options.incumbent) add(*options.incumbent);
  for (const size_t hint : options.hints) add(hint);
  // First the best. Then, among likely kinds, each time the one that differs most from all that are taken.
  // Then the best of each other kind, then points that are not neighbours of one that is taken, then the
  // rest.
  std::vector<size_t> model;
  const auto take = [&](size_t point) {
    if (int(model.size()) < options.fromModel && add(point)) model.push_back(point);
  };
  const double best = landscape[landscape.ranked().front()].predicted;
  const std::vector<size_t> kinds = landscape.bestOfKinds();
  std::vector<size_t> likely;
  for (const size_t kind : kinds)
    if (landscape[kind].predicted <= kLikely * best) likely.push_back(kind);
  take(kinds.front());
  while (!likely.empty() && int(model.size()) < options.fromModel) {
    const auto next = std::max_element(likely.begin(), likely.end(), [&](size_t a, size_t b) {
      return familyDistanceToNearest(landscape, seeds, a) < familyDistanceToNearest(landscape, seeds, b);
    });
    take(*next);
    likely.erase(next);
  }
  for (const size_t kind : kinds) take(kind);
  for (const size_t point : landscape.ranked())
    if (std::all_of(model.begin(), model.end(),
                    [&](size_t other) { return landscape.knobDistance(point, other) > 1; }))
      take(point);
  for (const size_t point : landscape.ranked()) take(point);
  // At random among points that may be fast enough; only new kinds as long as such are drawn.
  const double limit = std::max(kHopeful * best, landscape[landscape.byDefault()].predicted);
  const auto hopeless = std::find_if(landscape.ranked().begin(), landscape.ranked().end(),
                                     [&](size_t point) { return landscape[point].predicted > limit; });
  const auto hopeful = size_t(hopeless - landscape.ranked().begin());
  std::mt19937_64 random(options.seed);
  for (int left = options.atRandom, tries = 0; left > 0 && tries < 2 * kTries; ++tries) {
    const size_t point = landscape.ranked()[random() % hopeful];
    if (tries < kTries && familyDistanceToNearest(landscape, seeds, point) == 0) continue;
    left -= add(point);
  }
  return seeds;
}

Outcome search(const Landscape& landscape, Lab& lab, const SearchOptions& options) {
  return Searching(landscape, lab, options).run();
}

}  // namespace normc::tune
