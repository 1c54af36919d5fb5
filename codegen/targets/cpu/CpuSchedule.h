// Schedules of the CPU target: chosen here, applied by the lowering.
//
// The fields are those of #norm.schedule; a schedule prints as
// `streamed,vector=16,rows=4,unroll=1,tile=4,grain=32` in manifests and records.
// `grain` is the least that a task has: rows, or elements where rows are split.
#pragma once

#include <optional>
#include <string>

#include "codegen/dialect/Norm.h"
#include "codegen/plan/Planner.h"
#include "codegen/targets/cpu/CpuIsa.h"
#include "runtime/abi/MemoryUnits.h"

namespace normc::codegen::cpu {

/// Calls with an x of at least so many bytes take `stream` rows in a step.
constexpr double kLargeBytes = 8 << 20;
/// Outputs of at least so many bytes go past the caches, unless the caller says otherwise.
constexpr double kStreamBytes = 32 << 20;

/// Features of a kernel for any number of them, as far as choices go.
constexpr int64_t kUnknownFeatures = 1024;

struct Schedule {
  Strategy strategy = Strategy::Streamed;
  int64_t vector = 8;
  int64_t rows = 4;
  int64_t unroll = 1;
  int64_t tile = 4;
  int64_t grain = 32;
  bool scalarTail = false;
  int64_t stream = 0;  ///< rows of a step in calls that do not fit in caches, whose outputs go past them; 0: all calls alike
  bool ahead = false;  ///< statistics of the next lines before outputs of these
  bool fetch = false;  ///< in calls with `stream`, inputs of the next rows are asked for while outputs of these are written

  std::string text() const;
  ScheduleAttr attribute(mlir::MLIRContext*) const;
  bool inTurn = false;  ///< lines that go together are written one after the other
  bool operator==(const Schedule&) const = default;
};

/// Reads the printed form. Errors name the part that is wrong.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef);

/// Why the schedule cannot be compiled for this problem, with the numbers; nothing
/// where it can. The one function that lowering, tuning and loading of records ask.
std::optional<std::string> whyIllegal(const Problem&, const Schedule&, const Isa&);

/// Elements of a row that share a statistic of it; 0 where none has one.
int64_t statisticWidth(const Problem&);

/// Whether a task writes runs that go together, rows or channels, and could write one after the other.
bool canStoreInTurn(const Problem&, Strategy);

/// At how many places within a page the rows of a tensor begin: 1 where they are a multiple of a page apart, or less than a
/// line beside it, and so share sets of the first-level cache; 2 where that is so of every other row; 64 where nothing is
/// known.
int64_t pageOffsetsOfRows(const Problem&);

/// Of how many rows, a power of two up to 8, no two begin beside each other within a page: at one place they may.
int64_t rowsWithoutPageConflict(const Problem&);

/// Whether rows are shorter than a page, and what a strip of columns reads of one ends and begins within lines.
bool splitsCacheLines(const Problem&);

/// Whether vectors hold whole statistics side by side and sweeps run down the rows, `rows` of them in a step: there `tile`
/// counts, and `unroll` and `stream` do not.
bool usesColumnTiles(const Problem&, Strategy);

/// Those that this target has for the problem, the default first.
llvm::SmallVector<Strategy, 2> strategies(const Problem&);

/// A legal schedule that needs no measurement.
Schedule defaultSchedule(const Problem&, const Isa&, Strategy);

}  // namespace normc::codegen::cpu
