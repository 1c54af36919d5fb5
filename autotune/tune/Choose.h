// Chooses a schedule by records, for `compile --records`. The rungs, in order:
//
//   exact              this problem, these rows, this device
//   bucket             rows of the same power of two, and features of the same half octave
//   neighbour          the nearest rows and features on this device, within a factor of 8 and 2
//   same architecture  the same three on another device that runs the same code
//   default            no measurement: the target's default
//
// Among equally near choices the newest is taken (records/Standing.h). A choice is skipped if it lost or
// failed when it was measured again, or if it is of another toolchain, whose code differs from the code that
// was timed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/records/Database.h"
#include "autotune/records/Standing.h"

namespace normc::tune {

/// The machine that a schedule is chosen for.
struct Site {
  Device device;
  std::map<std::string, std::string> toolchain;
};

struct Pick {
  const Record* record = nullptr;  ///< the record of the schedule; null: the default, because no record fits
                                   ///< or the choice is a tie
  std::string origin = "default";  ///< for the manifest: "record 1f2e3d4c, exact, 1.31x the default"
  std::vector<std::string> rungs;  ///< the rungs that were tried, with the result of each
};

/// Returns the choice for a task. `wanted` needs problem, norm, segments, rows, features and threads.
/// `Standing`: of these records. `usable`: true if a schedule can be compiled for the problem here. The
/// records outlive the result.
Pick pickFor(const Task& wanted, const Site&, const Database&, const Standing&,
             const std::function<bool(const Record&)>& usable);

/// Returns the distance of two counts in octaves. A call without rows is as far from others as one of one
/// row.
double octaves(int64_t a, int64_t b);

/// True if the rows of a feature form a run in each segment, so that the rows of one segment matter too.
bool rowsLieInRuns(const Task&);

/// Returns the sizes at which the records have choices for the problem, ascending by the rows of all
/// segments.
std::vector<Task> tunedSizes(const Database&, const ProblemText&, const std::string& norm, const Device&);

}  // namespace normc::tune
