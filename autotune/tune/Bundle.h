// A tuning in a folder, to be measured on another machine: the candidates as compiled
// packages, and the tasks they belong to. Nothing but the runtime is needed to run it.
//
//   FOLDER/plan.json        tasks, each with its candidates
//   FOLDER/0/17.npk         candidate 17 of task 0, a package that holds it alone
//   FOLDER/results.jsonl    records, as they come; a run that was stopped goes on from them
//
// normc-bundle runs all of one; hosts that tune by themselves (autotune/tuner) ask for single tasks.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "autotune/search/Search.h"
#include "autotune/tune/LiveLab.h"

namespace normc::tune {

/// One task of a bundle, and the landscape of the candidates that it brings.
struct Shipped {
  Setting setting;                   ///< its device says only what code was made for
  std::vector<Point> points;         ///< the default first
  std::vector<BuiltCandidate> made;  ///< of each; paths are within the folder
};

/// The text of plan.json.
std::string planText(const std::vector<Shipped>&);

/// Why a bundle cannot be used.
class BundleError : public std::runtime_error {
 public:
  enum Kind { Missing, Damaged, Foreign };  ///< foreign: of another version of normc
  BundleError(Kind kind, const std::string& text) : std::runtime_error(text), kind(kind) {}
  Kind kind;
};

/// The tasks of plan.json. A BundleError names the file and what is wrong with it.
std::vector<Shipped> readPlan(const std::string& folder);

/// How a bundle is run.
struct BundleRun {
  std::string folder, records;  ///< records: where results go
  std::string worker;           ///< the program
  double budget = 20;           ///< seconds for one task
  double seconds = 0;           ///< for all tasks, shared evenly among those that are left; 0: no limit
  bool fresh = false;           ///< tasks that the records have a choice of are measured again
  int deviceIndex = 0;          ///< of a bundle for CUDA
  std::string cudaLibrary = "libcuda.so.1";
  std::function<bool()> stop = [] { return false; };
  std::function<void(const SearchOptions::Progress&)> progress = [](const SearchOptions::Progress&) {};
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< a line for each task
  std::function<double()> clock = secondsNow;  ///< what `seconds` are counted by; never goes back
};

/// What became of one task.
struct Found {
  Task task;              ///< as it is on this machine
  std::string package;    ///< path of one that holds the chosen kernel alone
  std::string schedule;   ///< its text
  Conclusion conclusion;  ///< a tie: the default is chosen
  double defaultSeconds = 0;
  size_t candidates = 0, rejected = 0;
  bool remembered = false;  ///< by the records: nothing was measured
  bool complete = true;     ///< false: stopped before it was decided; then nothing is chosen
  std::string failure;      ///< why the default could not be measured; then nothing is chosen
};

/// A bundle and its records, open on the machine that measures. One task at a time.
class OpenBundle {
 public:
  /// Throws BundleError, and std::runtime_error where records cannot be written. The run outlives it.
  explicit OpenBundle(const BundleRun&);

  const std::vector<Shipped>& tasks() const { return tasks_; }
  /// Searches among the candidates of a task, or finds in the records what was chosen before. The task may be
  /// one of tasks() at other rows, threads, or by another policy: its kernels serve any. Throws
  /// std::runtime_error where no worker can be had, or the device is gone.
  Found tune(const Shipped&, double budget);

 private:
  const BundleRun& run_;
  std::vector<Shipped> tasks_;
  Journal journal_;
  std::string session_;
};

/// How running a bundle ended.
enum class BundleEnd { Whole, Failed, Stopped, OutOfTime };  ///< failed: a default could not be measured

/// Measures task after task. Throws as OpenBundle does; what was measured until then is in the records.
BundleEnd runBundle(const BundleRun&);

}  // namespace normc::tune
