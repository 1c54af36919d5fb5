// The lab's side of the worker protocol: starts the process, sends requests, passes on what one process
// learned to the next, and checks every answer. A candidate may have written anywhere in the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "autotune/measure/Copy.h"
#include "autotune/measure/QuietCoreSampler.h"
#include "autotune/records/Record.h"
#include "autotune/tune/MakeAhead.h"
#include "autotune/tune/Setting.h"
#include "autotune/worker/Protocol.h"
#include "autotune/worker/Worker.h"

namespace normc::tune {

/// A failure that a worker reported: of the candidate if it was loaded, else of the task.
struct CannotDo : std::runtime_error {
  explicit CannotDo(const std::string& error, bool mayPass = false)
      : std::runtime_error(error), mayPass(mayPass) {}
  bool mayPass;  ///< memory, descriptors or a file were missing: no fault of the candidate
};

/// How a candidate failed when it was tried.
struct CandidateFailure {
  Status status = Status::Ok;
  std::string reason;
  bool mayPass = false;  ///< see CannotDo
};
/// Calls `body`. Returns the failure for which it threw Worker::Ended or CannotDo; none: it returned.
std::optional<CandidateFailure> attempt(const std::function<void()>& body);

/// Every request may start a worker, and throws Worker::Ended if the worker ends, CannotDo if it reports a
/// failure, and std::runtime_error if it is of another version or cannot be started.
class WorkerClient {
 public:
  /// `worker`: path of normc-worker. The setting outlives the object.
  WorkerClient(const Setting&, std::string worker);

  /// Sets the number of rows of the calls that follow. Another number needs another worker.
  void setRows(int64_t rows);
  int64_t rows() const { return rows_; }
  void endWorker() { worker_.reset(); }
  /// The next worker has its memory at other addresses.
  void renew();

  void load(size_t point, const BuiltCandidate&);
  bool isLoaded(size_t point) const { return worker_ && worker_->alive() && loaded_.contains(point); }
  void start() { worker(); }

  GateAnswer gate(size_t point, GatePart, double seconds);

  /// Takes samples of all points in turns. `first`: the number of rounds before these, which determines the
  /// order (measure/Order.h). `patience`: seconds for the answer, beside the wait for a quiet core; `quiet`:
  /// seconds for that wait. `seconds`: fewer rounds are taken if they take longer, but at least one.
  std::vector<Samples> sample(const std::vector<size_t>& points, int first, int rounds, double patience,
                              double quiet, std::optional<double> seconds);
  /// Returns the seconds of a copy with this traffic, measured for `seconds` at most, but once.
  double copy(const measure::Traffic&, double seconds);

  int64_t disturbed() const { return disturbed_; }
  double waited() const { return waited_; }  ///< seconds, for a quiet core
  /// True if samples were never taken on a core that others used, for lack of time to wait.
  bool patient() const { return patient_; }

 private:
  Worker& worker();
  TaskRequest task() const;
  /// Returns the result of `read` on the answer.
  template <typename Read>
  auto ask(const Json& request, double seconds, const Read& read);

  const Setting& setting_;
  std::string program_;
  std::unique_ptr<Worker> worker_;
  std::set<size_t> loaded_;  ///< candidates that the current worker has loaded
  int64_t rows_;
  uint64_t renewed_ = 0;
  // State that is passed from one worker to the next.
  measure::Loops loops_;  ///< the fastest that any worker measured
  double waited_ = 0;
  bool patient_ = true;
  int64_t disturbed_ = 0;
};

}  // namespace normc::tune
