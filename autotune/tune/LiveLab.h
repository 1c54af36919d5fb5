// The lab that measures: a callback makes the candidates; a worker process judges and times them; every
// measurement becomes a record.
//
// A crash, a hang or a wrong result affects only the worker process. The failed candidate is recorded with
// the observed failure and not run again; the next candidate runs in a new process.
//
// Candidates that are announced are made by other threads while the worker measures. Tensors that are large
// are screened with fewer rows (Setting::screenRows) by a worker of their own.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autotune/records/Database.h"
#include "autotune/records/Journal.h"
#include "autotune/search/Lab.h"
#include "autotune/search/Landscape.h"
#include "autotune/search/Search.h"
#include "autotune/tune/MakeAhead.h"
#include "autotune/tune/Remembered.h"
#include "autotune/tune/Setting.h"
#include "autotune/tune/WorkerClient.h"

namespace normc::tune {

class LiveLab : public Lab {
 public:
  struct Callbacks {
    MakeAhead::Make make;  ///< called by several threads
    std::function<bool()> stop = [] { return false; };
    std::string worker;          ///< path of normc-worker
    Journal* journal = nullptr;  ///< null: measurements are not recorded
  };
  /// `remembered`: results of earlier sessions; these points are not screened again. All arguments outlive
  /// the lab.
  LiveLab(const Landscape&, const Setting&, Callbacks, std::map<size_t, Screened> remembered);
  ~LiveLab() override;

  double now() override;
  bool stopped() override { return callbacks_.stop(); }
  void endBy(double time) override { end_ = time; }
  void announce(const std::vector<size_t>& points) override;
  std::vector<Screened> screen(const std::vector<size_t>& points) override;
  double scale() override;
  std::vector<Samples> heat(const std::vector<size_t>& points, int rounds) override;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override;
  /// The next race starts a new process. Each process has its memory on other physical pages, so the results
  /// do not depend on one placement.
  void renew() override { renewing_ = true; }
  double startSeconds() override { return startSeconds_; }

  /// Returns the seconds of a copy with this traffic, the faster of two; 0 if none can be made. It is
  /// measured for `seconds` at most, but once.
  double copySeconds(const measure::Traffic&, double seconds = 60);
  /// Writes the decision of a search as a record. With a verdict: the result of measuring a choice again.
  void conclude(const Outcome&, std::optional<Verdict> again = {});
  int64_t disturbed() const { return client_.disturbed(); }
  /// True if no disturbed sample was accepted, for lack of time to wait for a quiet core.
  bool patient() const { return client_.patient(); }
  const std::optional<BuiltCandidate>& made(size_t point) const { return facts_.at(point).made; }
  const Screened* failed(size_t point) const override {
    const auto at = failed_.find(point);
    return at == failed_.end() ? nullptr : &at->second;
  }

 private:
  struct Facts {
    std::optional<BuiltCandidate> made;
    int64_t trials = 0;
    double worst = 0;
    bool whole = false;  ///< the gate has no more trials for it
  };
  using Each = std::function<void(const std::vector<Samples>&)>;

  int64_t screenRows() const { return setting_.screenRows ? setting_.screenRows : setting_.task.rows; }
  /// True if the candidate is made; false if the time is over before.
  bool make(size_t point);
  void load(size_t point);
  Screened measure(size_t point);
  /// Takes the samples of a candidate that is screened, and of the default in the same rounds.
  void timeWithDefault(Screened&);
  Screened judged(size_t point);
  /// Runs the gate. Returns the failure; empty: it passed.
  std::string askGate(size_t point, GatePart part);
  std::vector<size_t> finishGate(const std::vector<size_t>& points);
  void loadDefault();
  /// Takes fewer rounds if it is stopped, its time is over, or rounds are long. Calls `each` with what every
  /// request gave.
  std::vector<Samples> sample(
      const std::vector<size_t>& points, int rounds, const Each& each = [](const std::vector<Samples>&) {});
  /// Times all points with the present rows, and records it as of `stage`.
  std::vector<Samples> timed(const std::vector<size_t>& points, int rounds, const std::string& stage);
  /// Returns the points that still run when each is run alone, for `rounds`, in a worker of its own. The
  /// others are recorded as failed and left out.
  std::vector<size_t> able(const std::vector<size_t>& points, int rounds = 0);
  /// Leaves a candidate out of the race, and records why, unless the reason may pass.
  void fail(size_t point, const CandidateFailure&);
  /// Returns a record without its number.
  Record recordOf(size_t point) const;
  /// Numbers a record and writes it.
  void keep(Record);
  double left() { return exempt_ ? std::numeric_limits<double>::infinity() : end_ - now(); }
  double limit();
  double callSeconds() const;

  const Landscape& landscape_;
  const Setting& setting_;
  Callbacks callbacks_;
  std::map<size_t, Screened> remembered_;
  std::map<size_t, Facts> facts_;
  std::vector<size_t> announced_;
  std::map<std::string, size_t> byObject_;  ///< the first point with each code
  WorkerClient client_;
  std::map<size_t, Screened> failed_;  ///< how candidates failed in a race
  double longestGate_ = 0, startSeconds_ = 0;
  double secondsOfRow_ = 0;  ///< of a call of the default
  bool renewing_ = false;
  int64_t number_ = 0;  ///< of the next record
  double begin_;
  double end_ = std::numeric_limits<double>::infinity();  ///< of now(), for calls of the search
  bool exempt_ = true;                                    ///< what is done now is done whatever it takes
  int processors_;
  MakeAhead makeAhead_;  ///< last, so that its threads end first
};

}  // namespace normc::tune
