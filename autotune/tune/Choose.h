// From records to a schedule: the ladder that `compile --records` climbs down.
//
//   exact              this problem, these rows, this device
//   bucket             rows of the same power of two, or features of the same half octave
//   neighbour          the nearest rows and features on this device, up to 8 and 2 times away
//   same architecture  the same three on another device that runs the same code
//   default            no measurement: the target's own guess
//
// Of several choices that are equally near the newest is taken (records/Standing.h). One
// that lost, or went wrong, when it was measured again is passed over, and so is one of
// another toolchain: its code is not the code that was timed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/records/Database.h"

namespace normc::tune {

/// Where code is chosen for.
struct Site {
  Device device;
  std::map<std::string, std::string> toolchain;
};

struct Pick {
  const Record* record =
      nullptr;  ///< whose schedule is taken; null: the default, by want of records or by a tie
  std::string origin = "default";  ///< for the manifest: "record 1f2e3d4c, exact, 1.31x the default"
  std::vector<std::string> rungs;  ///< each one that was tried, and what was found there
};

/// `wanted` needs problem, norm, segments, rows, features and threads. `usable`: whether a schedule can be
/// made for the problem here. The records outlive the result.
Pick pickFor(const Task& wanted, const Site&, const Database&,
             const std::function<bool(const Record&)>& usable);

/// Whether a task's rows are a run of each feature in each segment: how many one has counts there, too.
bool rowsLieInRuns(const Task&);

/// Sizes that choices for the problem have been made at, by their rows of all segments, ascending.
std::vector<Task> tunedSizes(const Database&, const ProblemText&, const std::string& norm, const Device&);

}  // namespace normc::tune
