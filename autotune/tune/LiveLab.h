// The lab that measures: candidates are made by whoever can make them, and judged and
// timed in a worker process; every measurement becomes a record.
//
// What a candidate does to the worker ends with the worker: a crash, a hang, a wrong
// number. The candidate is quarantined with what was seen, the next one meets a new process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "autotune/measure/QuietCoreSampler.h"
#include "autotune/records/Database.h"
#include "autotune/records/Journal.h"
#include "autotune/search/Lab.h"
#include "autotune/search/Landscape.h"
#include "autotune/search/Search.h"
#include "autotune/worker/Worker.h"

namespace normc::tune {

/// Elements of x that a task may have at most.
inline constexpr int64_t kMostElements = int64_t(1) << 33;
/// Threads that it may name: no machine has as many, and each takes memory of a worker.
inline constexpr int64_t kMostThreads = 1 << 16;

/// Of a budget, to wait for a core on which nobody else computes.
inline constexpr double kQuietShare = 0.4;

/// By a clock that never goes back.
double secondsNow();

/// A candidate as a package on disk that holds it alone.
struct BuiltCandidate {
  std::string package;       ///< path
  std::string object;        ///< SHA-256 of its code
  std::string failure = {};  ///< why there is none; then the rest is empty
  bool unavailable =
      false;  ///< the failure says nothing of the candidate: it is not recorded, and a later run tries again
};

/// Whatever all measurements of one task have in common.
struct Setting {
  Task task;
  std::string spec;  ///< text of the norm
  Device device;
  std::map<std::string, std::string> toolchain;
  std::string session;
  int64_t stamp = 0;  ///< of its records
  double sampleSeconds = 200e-6;
  int deviceIndex = 0;  ///< of a CUDA device
  std::string cudaLibrary = "libcuda.so.1";
  double patience = 60;  ///< seconds for the first gate, which waits for the reference; later ones get less
  double quietPatience = 8;  ///< seconds in all to wait for a core on which nobody else computes
};

class LiveLab : public Lab {
 public:
  struct Callbacks {
    std::function<std::vector<BuiltCandidate>(const std::vector<size_t>&)>
        make;  ///< several, perhaps at once
    std::function<bool()> stop = [] { return false; };
    std::string worker;          ///< the program
    Journal* journal = nullptr;  ///< null: nothing is kept
  };
  /// `remembered`: what earlier sessions found; those points are not measured again in screening. All
  /// arguments outlive it.
  LiveLab(const Landscape&, const Setting&, Callbacks, std::map<size_t, Screened> remembered);
  ~LiveLab() override;

  double now() override;
  bool stopped() override { return callbacks_.stop(); }
  std::vector<Screened> screen(const std::vector<size_t>& points) override;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override;
  /// Each process has its memory on pages that lie anywhere, elsewhere in each, so that luck with them
  /// decides nothing.
  void renew() override { worker_.reset(), ++renewed_; }

  /// Seconds of a copy with the transfers of a kernel, the faster of two; 0 where none can be made.
  double copySeconds(int reads, int writes);
  /// Writes what a search decided as a record. With a verdict: what a choice did when it was measured again.
  void conclude(const Outcome&, const std::string& kind = "choice", const std::string& verdict = "");
  int64_t disturbed() const { return disturbed_; }
  /// Whether there is still time to wait for a quiet core; without it any sample counted.
  bool patient() const { return quietPatience_ > 0; }
  const std::optional<BuiltCandidate>& made(size_t point) const { return facts_.at(point).made; }
  /// How one failed in a race.
  Status raced(size_t point) const {
    const auto at = failed_.find(point);
    return at == failed_.end() ? Status::Ok : at->second;
  }

 private:
  struct Facts {
    std::optional<BuiltCandidate> made;
    int64_t trials = 0;
    double worst = 0;
  };

  Worker& worker();
  /// What `read` makes of the answer; throws std::runtime_error where that has another shape, as of another
  /// version.
  template <typename Read>
  auto ask(const Json& request, double seconds, const Read& read);
  void makeAll(const std::vector<size_t>&);
  void load(size_t point);
  Screened measure(size_t point);
  Screened judged(size_t point);
  void loadDefault();
  /// Fewer rounds where it is stopped and they are long.
  std::vector<Samples> sample(const std::vector<size_t>& points, int rounds);
  /// By one request; `first`: rounds that were taken before, whose turns go on.
  std::vector<Samples> sampleSome(const std::vector<size_t>& points, int first, int rounds);
  /// Those that can still be run, with rounds: each alone in a worker of its own. Who cannot is recorded and
  /// left out.
  std::vector<size_t> able(const std::vector<size_t>& points, int rounds = 0);
  Record recordOf(size_t point) const;
  /// Nothing of a candidate that could not be made here and now.
  void keepTrial(size_t point, const Record&);
  void keep(const Record&);
  double limit() const;

  const Landscape& landscape_;
  const Setting& setting_;
  Callbacks callbacks_;
  std::map<size_t, Screened> remembered_;
  std::map<size_t, Facts> facts_;
  std::map<std::string, size_t> byObject_;  ///< the first point of each code
  std::unique_ptr<Worker> worker_;
  std::set<size_t> loaded_;          ///< in the worker that lives
  std::map<size_t, Status> failed_;  ///< in a race, and how
  double longestGate_ = 0, callSeconds_ = 0;
  int64_t disturbed_ = 0;
  // Of one worker for the next.
  measure::Loops loops_;  ///< the fastest that any saw
  double quietPatience_;  ///< what is left of the setting's
  uint64_t renewed_ = 0;
  mutable int64_t number_ = 0;
  double begin_;
};

/// What was chosen for this very task on this device with this toolchain, and its point: of several the
/// newest that stands; null where nothing does.
std::pair<const Record*, size_t> choiceOf(const Landscape&, const std::vector<Record>&, const Setting&);

/// What a decision says in a record.
Conclusion conclusionOf(const Decision&);

/// What records say of points that were screened before, on this device with this toolchain; whether one was
/// rejected the newest says.
std::map<size_t, Screened> rememberedFrom(const Landscape&, const std::vector<Record>&, const Setting&);

}  // namespace normc::tune
