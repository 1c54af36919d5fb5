// Default schedules that were measured on a device: the lines of an architecture's table
// (defaults/sm_90.jsonl).
//
//   {"problem": "layer_norm:backward@bf16[*x4096]", "schedule": "resident,threads=256,..."}
//   {"problem": "layer_norm:forward@bf16[*x4096]", "schedule": "resident,threads=256,...", "rows_max": 4096}
//
// The second is for calls of at most so many rows; the kernel for others has a line without, or the rule's
// schedule.
// A line is of rows with a statistic each, of a centered norm (scale and bias) or of one that is not (scale),
// alone or of a residual stream, and serves every kernel that does the same work on rows of that length. For
// other lengths the rule decides (Defaults.cpp): a schedule of one length often spills, or leaves threads
// idle, at the next.
#pragma once

#include <optional>
#include <vector>

#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Schedule.h"
#include "codegen/targets/cuda/Traits.h"

namespace normc::codegen::cuda {

struct TableLine {
  Problem problem;
  Schedule schedule;
  std::optional<int64_t> rowsMax;  ///< of a call; absent: any number
};

/// Returns the lines of a table behind its first, which says what was measured. An error names the line and
/// what is wrong with it.
llvm::Expected<std::vector<TableLine>> readTable(llvm::StringRef lines);

/// Returns the lines for an architecture; none if no device of it was measured. Thread-safe.
const std::vector<TableLine>& tableOf(const Arch&);

/// Returns the line of rows that are plain (Defaults.cpp), for any number of them or for few; null if the
/// table has none that fits.
const TableLine* measuredLine(const KernelTraits&, const Arch&, bool forFewRows);

}  // namespace normc::codegen::cuda
