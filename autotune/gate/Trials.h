// The trials of the gate: with which sizes, data, numbers and placements a kernel is called.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/Arguments.h"
#include "dsl/HardInputs.h"

namespace normc::gate {

/// Numbers of a norm by name (dsl/Numbers.h).
using Numbers = std::map<std::string, double>;

/// One trial: sizes, data and the placement of arguments.
struct Trial {
  Extents extents;
  HardInput data = HardInput::Normal;
  HardMask mask = HardMask::Scattered;  ///< used if the problem has a mask
  bool nanPadding = false;              ///< padded rows that are left out hold NaN
  int64_t step = 0;                     ///< training steps before this one, for the state
  bool farState = false;                ///< running statistics are far from those of the batch
  Numbers numbers;  ///< all that are not the defaults: a plan with them is judged (Plans.h)
  uint64_t seed = 1;
  Placement placement;

  std::string text(const Problem&) const;  ///< e.g. `33x128 mean1000 step=5 row_padding=3 seed=1`
};

/// Returns the trials that every kernel has to pass, with the defaults of its numbers: extreme data, odd
/// sizes, every placement. `features` is the problem's own number, or one of several for a kernel of any
/// number. A trial has up to 129 rows, fewer above 8000 features.
std::vector<Trial> standardTrials(const Problem&, int64_t features);

/// Returns the trials that show whether a kernel reads each of its numbers. All have the same numbers, of
/// which none is the default and no two are equal.
std::vector<Trial> trialsOfNumbers(const Problem&, int64_t features);

/// Returns a number of training steps behind every limit of the norm, with the defaults of its numbers:
/// warmup is over, renorm has begun and windows are full.
int64_t stepsBehindLimits(const Problem&);

/// Returns about how many bytes of memory a standard trial takes: the tensors of its call, and what the
/// reference computes of them. Above some ten million features that is gigabytes.
int64_t bytesOfTrials(const Problem&, int64_t features);

/// Returns a trial with more rows, so that sums of several tasks are folded also where a task has hundreds of
/// short rows; nothing if rows are so long that standard trials have several tasks.
std::optional<Trial> trialOfManyTasks(int64_t features);

}  // namespace normc::gate
