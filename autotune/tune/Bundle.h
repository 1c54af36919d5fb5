// A tuning in a folder, to be measured on another machine: the candidates as compiled
// packages, and the tasks they belong to. Nothing but the runtime is needed to run it.
//
//   FOLDER/plan.json        tasks, each with its candidates
//   FOLDER/0/17.npk         candidate 17 of task 0, a package that holds it alone
//   FOLDER/results.jsonl    records, as they come; a run that was stopped goes on from them
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/search/Search.h"
#include "autotune/tune/LiveLab.h"

namespace normc::tune {

/// One task of a bundle, and the landscape of the candidates that it brings.
struct Shipped {
  Setting setting;            ///< its device says only what code was made for
  std::vector<Point> points;  ///< the default first
  std::vector<Made> made;     ///< of each; paths are within the folder
};

/// The text of plan.json, and back. Errors name the file and what is wrong with it.
std::string planText(const std::vector<Shipped>&);
Result<std::vector<Shipped>> readPlan(const std::string& folder);

/// How a bundle is run.
struct BundleRun {
  std::string folder, records;  ///< records: where results go
  std::string worker;           ///< the program
  double budget = 20;
  int deviceIndex = 0;  ///< of a bundle for CUDA
  std::string cudaLibrary = "libcuda.so.1";
  std::function<bool()> stop = [] { return false; };
  std::function<void(const std::string&)> say = [](const std::string&) {};  ///< a line for each task
};

/// Measures task after task. Throws std::runtime_error; what was measured until then is in the records.
/// Returns whether every task came to an end with a decision.
bool runBundle(const BundleRun&);

}  // namespace normc::tune
