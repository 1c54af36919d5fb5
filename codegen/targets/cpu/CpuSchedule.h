// The schedules of the CPU target: their text, their legality and the defaults. The lowering applies them.
//
// The fields are those of #norm.schedule. A schedule prints as
// `streamed,vector=16,rows=4,unroll=1,tile=4,grain=32` in manifests and records.
//
// In these files a *width* is the number of elements of a row that share one statistic.
#pragma once

#include <optional>
#include <string>

#include "codegen/dialect/Norm.h"
#include "codegen/plan/Planner.h"
#include "codegen/targets/cpu/CpuIsa.h"
#include "runtime/abi/MemoryUnits.h"

namespace normc::codegen::cpu {

/// The number of features that choices assume for a kernel that serves any number of them.
constexpr int64_t kUnknownFeatures = 1024;

/// The features of its rows that a stream takes at a time in a call that is not large, without `wide`. Then
/// the rows of a step stay in a first-level cache of 32 KiB too.
constexpr int64_t kCachedTile = 512;

struct Schedule {
  Strategy strategy = Strategy::Streamed;
  int64_t vector = 8;
  int64_t rows = 4;
  int64_t unroll = 1;
  int64_t tile = 4;
  int64_t grain = 32;
  bool scalarTail = false;
  /// rows of a step in large calls, whose outputs are non-temporal; 0: all calls run the same loops
  int64_t stream = 0;
  /// software-pipelined: the statistics of the next rows are computed before the outputs of these rows
  bool ahead = false;
  /// in large calls the inputs of the next rows are prefetched while the outputs of these are written
  bool fetch = false;
  /// with `fetch`: the prefetches are non-temporal, for data that are used once
  bool nta = false;

  bool inTurn = false;  ///< the rows of a step are stored one after the other
  /// in calls that are not large a stream takes 1024 features of its rows at a time, not 512
  bool wide = false;

  std::string text() const;
  ScheduleAttr attribute(mlir::MLIRContext*) const;
  bool operator==(const Schedule&) const = default;
};

/// Reads the printed form. An error names the part that is wrong.
llvm::Expected<Schedule> parseSchedule(llvm::StringRef);
/// Sets a knob by its name in the text.
void setKnob(Schedule&, llvm::StringRef name, int64_t value);

/// The largest `grain`: no task has more rows, or features of a row.
constexpr int64_t kMostGrain = int64_t(1) << 40;

/// Returns why a knob is illegal; nothing if it is a power of two up to `most`.
std::optional<std::string> whyNoPower(llvm::StringRef knob, int64_t value, int64_t most);
/// Returns why `rows`, `unroll`, `grain` or `scalar_tail` of a schedule is illegal; nothing if all are legal.
std::optional<std::string> whyIllegalStep(const Problem&, const Isa&, int64_t rows, int64_t unroll,
                                          int64_t grain, bool scalarTail);
/// Returns why the schedule cannot be compiled for this problem, with the numbers; nothing if it can.
/// Lowering, tuning and the loading of records use this function and no other.
std::optional<std::string> whyIllegal(const Problem&, const Schedule&, const Isa&);

/// True if an operand has elements of 16 or 8 bits.
bool hasNarrowElements(const Problem&);

/// Returns the number of elements of a row that share one statistic of it; 0 if no statistic is of one row.
int64_t statisticWidth(const Problem&);

/// True if the kernel sums nothing: an inference with statistics that are given.
bool isMap(const Problem&);

/// True if a statistic is of a row whose features do not lie together, with layout channels_first. Then
/// `rows` and `stream` count the features of a step, and `unroll` the vectors of rows.
bool isAcrossChannels(const Problem&);

/// True if a step of a task writes several rows, or channels, each complete, so that they can be stored one
/// after the other (`in_turn`).
bool canStoreInTurn(const Problem&, Strategy);

/// True if a schedule of the problem may be `wide`: it has streams, of more features than kCachedTile.
bool canBeWide(const Problem&, Strategy);

/// Returns the number of rows whose x has `size` bytes, between 1 and `most`.
int64_t rowsOf(int64_t size, const Problem&, int64_t most);

/// Returns at how many offsets within a page the rows of a tensor begin. 1: rows are a multiple of a page
/// apart, or less than a cache line more or less, and share sets of the first-level cache. 2: every second
/// row does. 64: unknown.
int64_t pageOffsetsOfRows(const Problem&);

/// True if each lane of a vector holds a statistic of its own and sweeps go down the rows, `rows` of them in
/// a step. Then `tile` counts, and `unroll` and `stream` do not.
bool usesColumnTiles(const Problem&, Strategy);

/// Returns the strategies that this target has for the problem, the default first.
llvm::SmallVector<Strategy, 2> strategies(const Problem&);

/// Returns the schedule that is used without tuning. It is always legal.
Schedule defaultSchedule(const Problem&, const Isa&, Strategy);

}  // namespace normc::codegen::cpu
