// The knobs of the CUDA target: how the sweeps of a kernel are spread over threads. Nothing here makes code.
//
// One geometry serves all kinds of slab (docs/cuda.md): a *team* of threads walks along the contiguous axis,
// and the teams of a block take neighbouring units across it. A line has a statistic for each team, a block
// one for its block of threads, a column one for each lane of the team, a stream none.
#pragma once

#include <optional>
#include <string>

#include "codegen/plan/Planner.h"

namespace normc::codegen::cuda {

/// The most steps that runs are copied ahead.
inline constexpr int64_t kMostAhead = 3;

/// How the next rows of a line reach the chip while a team computes the present one.
struct Prefetch {
  enum Kind {
    None,
    Registers,  ///< loads whose values wait in registers
    Async,      ///< cp.async to shared memory, each thread for itself
    Bulk,       ///< cp.async.bulk to shared memory, one thread for its team
  };
  Kind kind = None;
  int64_t depth = 0;  ///< steps that reads are ahead; 1 for registers

  /// The number in the schedule's text: 0 none, 1 registers, 2 to 4 async and 5 to 7 bulk copies, 1 to 3
  /// steps ahead. Other numbers are read and printed as they are, and are illegal.
  static Prefetch fromKnob(int64_t);
  int64_t knob() const;
  /// Returns how many steps copies to shared memory are ahead; 0 if nothing is copied.
  int64_t copiesAhead() const { return kind >= Async ? depth : 0; }
  bool inBulk() const { return kind == Bulk; }
  explicit operator bool() const { return kind != None; }
  bool operator==(const Prefetch&) const = default;
};

struct Schedule {
  Strategy strategy = Strategy::Streamed;
  int64_t threads = 256;  ///< of a block
  int64_t team = 32;      ///< threads along the contiguous axis
  int64_t vector = 4;     ///< elements of one access
  int64_t tile = 1;  ///< accesses of a thread along the axis that stay in registers; 0: a loop, and every
                     ///< sweep reads memory
  int64_t rows = 1;  ///< rows that a team processes together
  int64_t chunks =
      1024;  ///< most tasks of a phase that leaves partials or reads ahead; others have as many as they can
  int64_t blocks =
      0;  ///< that a multiprocessor shall hold, which limits registers; 0: ptxas decides, and may spill
  Prefetch prefetch;    ///< of the next rows of a line
  int64_t cluster = 1;  ///< blocks that share a line (each has a team on it) or columns (each has rows);
                        ///< above 1 from sm_90 on
  int64_t hints = 0;    ///< the last access to an X-sized tensor is marked evict-first; 2: if it is a read
  int64_t hold = 0;     ///< steps of `rows` rows that a column keeps in registers; later rows are read again.
                     ///< In a line 1 means that scale and bias stay in shared memory for the rows of a task
  int64_t grid =
      1;  ///< blocks that share columns or a line in a cooperative launch, with a grid barrier over workspace
  int64_t shared =
      0;  ///< accesses of a thread along the axis, besides those of the tile, that stay in shared memory
  bool operator==(const Schedule&) const = default;
  /// "streamed,threads=256,team=32,vector=4,tile=1,rows=4,chunks=66,blocks=0,prefetch=0,cluster=1,hints=0,hold=0,grid=1,shared=0"
  std::string text() const;
};
llvm::Expected<Schedule> parseSchedule(llvm::StringRef text);
/// Sets a knob by its name in the text.
void setKnob(Schedule&, llvm::StringRef name, int64_t value);

/// Returns the rows of a column that stay on chip between sweeps.
inline int64_t heldRows(const Schedule& s) {
  return s.hold * s.rows * (s.threads / s.team) * s.cluster * s.grid;
}

/// Returns the features that one block of a stream or of columns works on.
inline int64_t columnsOf(const Schedule& s) { return s.team * s.vector * std::max<int64_t>(s.tile, 1); }

}  // namespace normc::codegen::cuda
