#include "autotune/search/Search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autotune/search/Screening.h"

namespace normc::tune {
namespace {

constexpr int kBlock = 10;          ///< rounds between two evaluations of a race, all in one process
constexpr int kLooks = 3 * kBlock;  ///< rounds before a schedule may leave the race
constexpr int kWinners = 4;         ///< the most winners that are confirmed, one after the other
/// The share of the remaining time that the first rounds of a race may take; the least seconds that a sample
/// takes.
constexpr double kRacing = 0.5, kSample = 4e-4;
/// A race of fewer rounds orders nothing: it has fewer finalists instead, and decides nothing.
constexpr int kFewestRounds = 3;
/// The ratio of a candidate that failed once while it was confirmed: it is not chosen.
constexpr double kFailed = 2;

class Searching {
 public:
  Searching(const Landscape& landscape, Lab& lab, const SearchOptions& options)
      : landscape_(landscape),
        lab_(lab),
        options_(options),
        stages_(stagesFor(lab.scale())),
        screening_(landscape, lab, options, outcome_) {}

  Outcome run() {
    if (screening_.measureDefault()) {
      screening_.run();
      race();
      if (outcome_.failure.empty()) settle();
    }
    outcome_.complete = outcome_.failure.empty() && !lab_.stopped();
    outcome_.decided = outcome_.complete && decides_;
    outcome_.seconds = lab_.now();
    return std::move(outcome_);
  }

 private:
  bool timeLeft(double share) { return lab_.now() < options_.until(share); }
  /// True if another process could take a round of `points` points before the share of the budget is over.
  bool mayStart(size_t points, double share) {
    return lab_.now() + lab_.startSeconds() + double(points) * sampleSeconds() < options_.until(share);
  }

  /// Returns about how long a sample of the default takes in a race.
  double sampleSeconds() const {
    return std::max(kSample, measure::median(outcome_.screened.front().samples) * lab_.scale());
  }

  /// Returns the number of finalists. Screening has few rounds, so the order of close candidates is chance:
  /// as many enter the race as there is time for.
  size_t finalists() {
    const int most = std::max(options_.finalists, options_.mostFinalists);
    if (options_.exhaustive) return size_t(most);
    if (options_.keepAll) return size_t(options_.finalists);
    const double left = std::max(0.0, options_.budget - lab_.now());
    const double room = kRacing * left / (options_.leastRounds * sampleSeconds());
    const double racing = options_.until(stages_.race) - lab_.now() - lab_.startSeconds();
    const double fewest = std::max(1.0, racing / (kFewestRounds * sampleSeconds()));
    return size_t(std::min(std::clamp(room, double(options_.finalists), double(most)), fewest));
  }

  void race() {
    std::vector<size_t> points{landscape_.byDefault()};
    const auto enter = [&](size_t point) {
      if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
    };
    if (options_.incumbent && !screening_.rejected(*options_.incumbent)) enter(*options_.incumbent);
    for (const Screened* leader : screening_.leaders(finalists() + 1)) enter(leader->point);
    for (const size_t point : points) outcome_.racers.push_back({point, {}});
    bool wholeBlocks = true;
    int rounds = 0;
    while (rounds < options_.mostRounds) {
      if (rounds > 0 &&
          (lab_.stopped() || outcome_.racers.size() == 1 || !mayStart(outcome_.racers.size(), stages_.race)))
        break;
      // The first process takes half of the time at most: another one has other addresses.
      const double now = lab_.now(), over = options_.until(stages_.race);
      lab_.endBy(rounds > 0 || std::isinf(over) ? over : now + (over - now) / 2);
      lab_.renew();
      const int taken = runBlock();
      if (!outcome_.failure.empty()) return;
      if (rounds == 0 && lab_.stopped() && taken < kBlock) {
        outcome_.failure = "it was interrupted in the first rounds of its race";
        outcome_.interrupted = true;
        return;
      }
      rounds += std::max(taken, 1);
      wholeBlocks &= taken == kBlock;
      if (rounds >= kLooks && wholeBlocks && !options_.keepAll) dropSlow();
      report("racing");
    }
    decides_ = points.size() > 1 ? rounds >= kFewestRounds : !outcome_.budgetSpent;
    outcome_.budgetSpent |= rounds < options_.mostRounds && outcome_.racers.size() > 1;
  }

  /// True if the choice of an earlier tuning may still win: few rounds do not take it back, nor does a race
  /// that it could not enter.
  bool earlierMayWin(const std::vector<Racer>& racers) const {
    if (options_.absentWin) return true;
    if (!options_.incumbent || options_.incumbent == landscape_.byDefault()) return false;
    const auto of = [&](size_t wanted) { return std::ranges::find(racers, wanted, &Racer::point); };
    const auto known = std::ranges::find(outcome_.screened, *options_.incumbent, &Screened::point);
    if (known != outcome_.screened.end() && known->mayPass) return true;
    const auto earlier = of(*options_.incumbent), byDefault = of(landscape_.byDefault());
    return earlier != racers.end() &&
           measure::pairedRatio(earlier->samples, byDefault->samples).low < 1 - kLeastGain + kHysteresis;
  }

  /// Decides, and confirms the winner. If less than half of its gain is confirmed, and the rest was luck with
  /// addresses, the next one is tried, while time is left. A gain that is only a little too small remains a
  /// tie: another attempt at the same would decide by chance. A tie takes an earlier choice back only if that
  /// one was slower, in the race or when it was confirmed.
  void settle() {
    const double slack = options_.confirmations > 0 ? kSecondLook : 0;
    std::vector<Racer> racers = outcome_.racers;
    for (int winner = 0; winner < kWinners; ++winner) {
      const Decision decision = decide(landscape_, racers, options_.incumbent, slack);
      if (winner == 0) outcome_.decision = decision;
      if (decision.tie) break;
      outcome_.decision.chosen = decision.chosen;
      outcome_.decision.tie = false;
      outcome_.decision.ratio = decision.ratio;
      const double gain = confirm();
      if (!outcome_.failure.empty() || !outcome_.decision.tie) return;
      std::erase_if(racers, [&](const Racer& racer) { return racer.point == decision.chosen; });
      if (gain > (1 - decision.ratio.value) / 2 || lab_.stopped() || !mayStart(2, 1)) break;
    }
    decides_ &= !earlierMayWin(racers);
  }

  /// The leader was selected because it was in front, so its ratio is biased. It is measured again by new
  /// processes; only that decides. Returns the gain that they found. A race that decides nothing has no
  /// winner to confirm.
  double confirm() {
    const Decision won = outcome_.decision;
    std::vector<Racer>& pair = outcome_.confirmation;
    pair = {{landscape_.byDefault(), {}}, {won.chosen, {}}};
    Samples each;
    const auto another = [&](int count) {
      if (!decides_ || lab_.stopped() || count >= options_.mostConfirmations || !mayStart(2, 1)) return false;
      return count < options_.confirmations || undecided(landscape_, won, each, options_.incumbent);
    };
    for (int i = 0; another(i); ++i) {
      // The first ones share the time that is left.
      const double now = lab_.now(), over = options_.until(1);
      lab_.endBy(std::isinf(over) ? over : now + (over - now) / std::max(options_.confirmations - i, 1));
      lab_.renew();
      const std::vector<Samples> block =
          lab_.race({landscape_.byDefault(), won.chosen}, options_.confirmingRounds);
      if (block.at(0).empty()) {
        outcome_.failure = "it failed in the race, after it had passed the gate";
        return 0;
      }
      if (block.at(1).empty()) {
        noteFailure(won.chosen);
        each = {kFailed};
        break;
      }
      if (lab_.stopped() && block[0].size() < size_t(options_.confirmingRounds)) break;
      for (size_t k = 0; k < 2; ++k)
        pair[k].samples.insert(pair[k].samples.end(), block[k].begin(), block[k].end());
      each.push_back(measure::medianRatio(block[1], block[0]));
      report("confirming");
    }
    outcome_.budgetSpent |= int(each.size()) < options_.confirmations && !timeLeft(1);
    if (options_.confirmations == 0) return 0;
    decides_ &= each.size() > 1 || each == Samples{kFailed};
    outcome_.decision = confirmed(landscape_, won, each, options_.incumbent);
    if (outcome_.decision.tie) pair.clear();
    return each.empty() ? 0 : 1 - std::accumulate(each.begin(), each.end(), 0.0) / double(each.size());
  }

  /// Makes a failure in a race the result of the point.
  void noteFailure(size_t point) {
    const Screened* const failure = lab_.failed(point);
    if (!failure) return;
    const auto known = std::ranges::find(outcome_.screened, point, &Screened::point);
    if (known == outcome_.screened.end())
      outcome_.screened.push_back(*failure);
    else {
      known->status = failure->status;
      known->reason = failure->reason;
      known->mayPass = failure->mayPass;
    }
  }

  /// Returns the number of rounds.
  int runBlock() {
    std::vector<size_t> points;
    for (const Racer& racer : outcome_.racers) points.push_back(racer.point);
    const std::vector<Samples> block = lab_.race(points, kBlock);
    std::vector<Racer> left;
    int rounds = 0;
    for (size_t i = 0; i < points.size() && i < block.size(); ++i) {
      Racer& racer = outcome_.racers[i];
      racer.samples.insert(racer.samples.end(), block[i].begin(), block[i].end());
      rounds = std::max(rounds, int(block[i].size()));
      if (block[i].empty())
        noteFailure(racer.point);
      else
        left.push_back(std::move(racer));
    }
    outcome_.racers = std::move(left);
    if (std::none_of(outcome_.racers.begin(), outcome_.racers.end(),
                     [&](const Racer& r) { return r.point == landscape_.byDefault(); }))
      outcome_.failure = "it failed in the race, after it had passed the gate";
    return rounds;
  }

  /// Removes the schedules that are clearly slower than the leader. The default stays to the end, and the
  /// choice of an earlier tuning until it is clearly slower than the default: the leader may not be
  /// confirmed.
  void dropSlow() {
    const Racer* leader = &outcome_.racers.front();
    for (const Racer& racer : outcome_.racers)
      if (measure::medianRatio(racer.samples, leader->samples) < 1) leader = &racer;
    const Samples best = leader->samples,
                  usual = std::ranges::find(outcome_.racers, landscape_.byDefault(), &Racer::point)->samples;
    std::erase_if(outcome_.racers, [&](const Racer& racer) {
      return racer.point != landscape_.byDefault() &&
             clearlySlower(racer.samples, racer.point == options_.incumbent ? usual : best, kBlock);
    });
  }

  void report(const char* phase) {
    const Screened& best = *screening_.leaders(1).front();
    options_.progress(
        {outcome_.screened.size(), screening_.total(), best.point, best.ratio(), lab_.now(), phase});
  }

  const Landscape& landscape_;
  Lab& lab_;
  const SearchOptions& options_;
  Stages stages_;
  Outcome outcome_;
  bool decides_ = true;  ///< there was time for a win, and for its confirmation
  Screening screening_;
};

}  // namespace

Outcome search(const Landscape& landscape, Lab& lab, const SearchOptions& options) {
  return Searching(landscape, lab, options).run();
}

}  // namespace normc::tune
