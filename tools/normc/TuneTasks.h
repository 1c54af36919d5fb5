// From the flags of `tune` to tasks: every problem at every number of rows, by every policy.
#pragma once

#include <string>
#include <vector>

#include "autotune/records/Record.h"
#include "tools/normc/Place.h"
#include "tools/normc/ProblemFlags.h"

namespace normc::cli {

struct TuneFlags {
  ProblemFlags problems;
  PlaceFlags place;
  std::vector<std::string> rows, policies{"warm"};
  int64_t elements = 0, segments = 0, threads = 0, seed = 1;
  std::string budget = "20s", total, records, shard, target = "host", output;
  int64_t candidates = 48, random = 3;
  std::vector<std::string> schedules;
  bool exhaustive = false, dryRun = false, fresh = false;
};

struct TuneTask {
  Problem problem;
  tune::Task task;
};

/// All tasks, or with --shard i/n those of one part: each task is in exactly one part, whatever the others
/// do.
std::vector<TuneTask> tasksOf(const TuneFlags&, int64_t threads);

}  // namespace normc::cli
