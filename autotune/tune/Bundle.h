// A tuning in a folder, to be measured on another machine: the candidates as compiled packages, and their
// tasks. Running it needs the runtime and no compiler.
//
//   FOLDER/plan.json        tasks, each with its candidates
//   FOLDER/0/17.npk         candidate 17 of task 0, a package that holds it alone
//   FOLDER/results.jsonl    records, appended during a run; a run that was stopped continues from them
//
// normc-bundle runs a whole bundle; hosts that tune at run time (autotune/tuner) run single tasks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/Clock.h"
#include "autotune/records/Journal.h"
#include "autotune/search/Search.h"
#include "autotune/tune/LiveLab.h"
#include "autotune/tune/PlanFile.h"

namespace normc::tune {

/// The file of records in a bundle.
inline constexpr const char* kResultsFile = "results.jsonl";

/// The options of a run.
struct BundleRun {
  std::string folder, records;   ///< records: the file of results
  std::string worker;            ///< path of normc-worker
  double budget = kUsualBudget;  ///< seconds for one task
  double seconds = 0;            ///< for all tasks, divided evenly among the remaining ones; 0: no limit
  bool fresh = false;            ///< measure tasks again that have a choice in the records
  int deviceIndex = 0;           ///< of a bundle for CUDA
  std::string cudaLibrary = gate::CudaDriver::kLibrary;
  std::function<bool()> stop = [] { return false; };
  std::function<void(const SearchOptions::Progress&)> progress = [](const SearchOptions::Progress&) {};
  std::function<void(const std::string&)> say = [](const std::string&) {
  };  ///< called with a line of text for each task
  std::function<double()> clock = measure::secondsNow;  ///< the clock for `seconds`; monotonic
};

/// The result of one task.
struct Found {
  Task task;              ///< with the device of this machine
  std::string package;    ///< path of a package that holds only the chosen kernel
  std::string schedule;   ///< its text
  Conclusion conclusion;  ///< a tie: the default is chosen
  double defaultSeconds = 0;
  size_t candidates = 0, rejected = 0;
  bool remembered = false;  ///< read from the records; nothing was measured
  bool complete = true;     ///< false: stopped before a decision; then nothing is chosen
  /// false: also if the budget ended before one; then the default serves, unrecorded, or an earlier choice
  /// that may still win
  bool decided = true;
  std::string failure;  ///< why the default could not be measured; if set, nothing is chosen
};

/// A bundle and its records, opened for measuring. Runs one task at a time.
class OpenBundle {
 public:
  /// Throws BundleError, or std::runtime_error if records cannot be written. The run outlives the object.
  explicit OpenBundle(const BundleRun&);

  const std::vector<Shipped>& tasks() const { return tasks_; }
  /// Searches among the candidates of a task, or returns the choice of the records. The task may be one of
  /// tasks() with other rows, threads or policy, because its kernels serve all of them. Throws
  /// std::runtime_error if no worker can be started or the device is lost.
  Found tune(const Shipped&, double budget);

 private:
  const BundleRun& run_;
  std::vector<Shipped> tasks_;
  Journal journal_;
  std::string session_;
};

/// How a run ended.
enum class BundleEnd { Whole, Failed, Stopped, OutOfTime };  ///< failed: a default could not be measured

/// Measures all tasks. Throws as OpenBundle does; measurements made before are in the records.
BundleEnd runBundle(const BundleRun&);

}  // namespace normc::tune
