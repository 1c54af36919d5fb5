// The lab that measures: a callback makes the candidates; a worker process judges and times them; every
// measurement becomes a record.
//
// A crash, a hang or a wrong result affects only the worker process. The failed candidate is recorded with
// the observed failure and not run again; the next candidate runs in a new process.
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

/// The most elements of x in a task.
inline constexpr int64_t kMostElements = int64_t(1) << 33;
/// The most threads of a task. No machine has as many, and each takes memory of a worker.
inline constexpr int64_t kMostThreads = 1 << 16;

/// The share of a budget for waiting for a core without other load.
inline constexpr double kQuietShare = 0.4;

/// Returns the seconds of a monotonic clock.
double secondsNow();

/// A candidate as a package on disk that holds only this candidate.
struct BuiltCandidate {
  std::string package;       ///< path
  std::string object;        ///< SHA-256 of its code
  std::string failure = {};  ///< why it could not be made; if set, the rest is empty
  /// The failure is not caused by the candidate: it is not recorded, and a later run tries again.
  bool unavailable = false;
};

/// The conditions that all measurements of one task share.
struct Setting {
  Task task;
  std::string spec;  ///< text of the norm
  Device device;
  std::map<std::string, std::string> toolchain;
  std::string session;
  int64_t stamp = 0;  ///< stamp of its records
  double sampleSeconds = 200e-6;
  int deviceIndex = 0;  ///< index of a CUDA device
  std::string cudaLibrary = "libcuda.so.1";
  double patience = 60;  ///< seconds for the first gate, which computes the reference; later gates have less
  double quietPatience = 8;  ///< seconds in total to wait for a core without other load
};

class LiveLab : public Lab {
 public:
  struct Callbacks {
    std::function<std::vector<BuiltCandidate>(const std::vector<size_t>&)>
        make;  ///< may make several candidates in parallel
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
  std::vector<Screened> screen(const std::vector<size_t>& points) override;
  std::vector<Samples> race(const std::vector<size_t>& points, int rounds) override;
  /// Starts a new process. Each process has its memory on other physical pages, so the results do not depend
  /// on one placement.
  void renew() override { worker_.reset(), ++renewed_; }

  /// Returns the seconds of a copy with the transfers of a kernel, the faster of two; 0 if none can be made.
  double copySeconds(int reads, int writes);
  /// Writes the decision of a search as a record. With a verdict: the result of measuring a choice again.
  void conclude(const Outcome&, const std::string& kind = "choice", const std::string& verdict = "");
  int64_t disturbed() const { return disturbed_; }
  /// True if time is left to wait for a quiet core. If not, disturbed samples were accepted.
  bool patient() const { return quietPatience_ > 0; }
  const std::optional<BuiltCandidate>& made(size_t point) const { return facts_.at(point).made; }
  /// Returns how a candidate failed in a race.
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
  /// Returns the result of `read` on the answer. Throws std::runtime_error if the answer has another shape,
  /// as one of another version may have.
  template <typename Read>
  auto ask(const Json& request, double seconds, const Read& read);
  void makeAll(const std::vector<size_t>&);
  void load(size_t point);
  Screened measure(size_t point);
  Screened judged(size_t point);
  void loadDefault();
  /// Takes fewer rounds if it is stopped or rounds are long. Calls `each` with what every request gave.
  std::vector<Samples> sample(
      const std::vector<size_t>& points, int rounds,
      const std::function<void(const std::vector<Samples>&)>& each = [](const std::vector<Samples>&) {});
  /// Takes samples by one request. `first`: the number of rounds taken before, which determines the rotation.
  std::vector<Samples> sampleSome(const std::vector<size_t>& points, int first, int rounds);
  /// Returns the points that still run when each is run alone, for `rounds`, in a worker of its own. The
  /// others are recorded as failed and left out.
  std::vector<size_t> able(const std::vector<size_t>& points, int rounds = 0);
  Record recordOf(size_t point) const;
  void keep(const Record&);
  double limit() const;

  const Landscape& landscape_;
  const Setting& setting_;
  Callbacks callbacks_;
  std::map<size_t, Screened> remembered_;
  std::map<size_t, Facts> facts_;
  std::map<std::string, size_t> byObject_;  ///< the first point with each code
  std::unique_ptr<Worker> worker_;
  std::set<size_t> loaded_;          ///< candidates that the current worker has loaded
  std::map<size_t, Status> failed_;  ///< how candidates failed in a race
  double longestGate_ = 0, callSeconds_ = 0;
  int64_t disturbed_ = 0;
  // State that is passed from one worker to the next.
  measure::Loops loops_;  ///< the fastest that any worker measured
  double quietPatience_;  ///< the remaining part of the setting's
  uint64_t renewed_ = 0;
  mutable int64_t number_ = 0;
  double begin_;
};

/// Returns the choice for this task on this device with this toolchain, and its point: the newest valid one.
/// Null if there is none.
std::pair<const Record*, size_t> choiceOf(const Landscape&, const std::vector<Record>&, const Setting&);

/// Returns the conclusion of a record for a decision.
Conclusion conclusionOf(const Decision&);

/// Returns the recorded results of points that were screened before, on this device with this toolchain. The
/// newest record of a point decides whether it was rejected.
std::map<size_t, Screened> rememberedFrom(const Landscape&, const std::vector<Record>&, const Setting&);

}  // namespace normc::tune
