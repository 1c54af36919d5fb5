// The knobs of the CUDA target: how the sweeps of a kernel are spread over threads.
//
// One geometry serves all kinds of slab (docs/cuda.md): a *team* of threads walks
// along the contiguous axis, the teams of a block stand side by side across it. A
// line has one statistic a team, a block one a block of threads, a column one a
// lane of the team, a stream none.
#pragma once

#include <optional>
#include <string>

#include "codegen/plan/Planner.h"
#include "codegen/targets/cuda/Arch.h"

namespace normc::codegen::cuda {

struct Schedule {
  Strategy strategy = Strategy::Streamed;
  int64_t threads = 256;  ///< of a block
  int64_t team = 32;      ///< threads along the contiguous axis
  int64_t vector = 4;     ///< elements of one access
  int64_t tile = 1;       ///< accesses of a thread along the axis that stay in registers; 0: a loop, memory is read again
  int64_t rows = 1;       ///< rows a team has under way together
  int64_t chunks = 1024;  ///< most tasks of a phase that leaves partials, others have as many as they can
  int64_t blocks = 0;     ///< resident on a multiprocessor, for which registers are limited; 0: ptxas weighs, and may spill
  int64_t prefetch = 0;   ///< 1: the next runs of a line are read while this one is computed; 2 to 4: copied, 1 to 3 steps ahead; 5 to 7: in bulk
  int64_t cluster = 1;    ///< blocks that share a line, each with a team on it, or columns, each with rows; above 1 from sm_90 on
  int64_t hints = 0;      ///< 1: caches are told what is not read again
  int64_t hold = 0;       ///< steps of `rows` rows that a column keeps in registers; those after them are read again
  int64_t grid = 1;       ///< blocks that share columns, each with rows, or a line, and meet over workspace: a cooperative launch
  int64_t shared = 0;     ///< accesses of a thread along the axis, beyond those of the tile, that stay in shared memory
  bool operator==(const Schedule&) const = default;
  /// "streamed,threads=256,team=32,vector=4,tile=1,rows=4,chunks=66,blocks=0,prefetch=0,cluster=1,hints=0,hold=0,grid=1,shared=0"
  std::string text() const;
};
llvm::Expected<Schedule> parseSchedule(llvm::StringRef text);

/// What legality and defaults have to know of a planned kernel.
struct Form {
  bool lines = false, blocks = false, columns = false, streams = false;
  int64_t dataBytes = 4;      ///< of an element of x
  int64_t features = 0;       ///< 0: any
  int64_t groups = 1;         ///< of a line: runs that share a row
  bool grouped = false;       ///< features are divided into groups
  int64_t width = 0;          ///< of one run along the contiguous axis; 0: any
  int64_t partials = 0;       ///< per feature, summed inside a line or a block
  bool runPartials = false;   ///< summed along the run: where channels come first
  int64_t reads = 1;          ///< X-sized tensors that one slab reads
  bool backward = false;      ///< there is a dy
  bool updates = false;       ///< backward has a state of its own (nu)
  bool returns = false;       ///< a column is swept for its statistics first, and then again
  int64_t sums = 0;           ///< of columns: values that the blocks of a cluster have to tell each other
  bool segmentColumns = false;  ///< a column ends with its segment
  bool doubles = false;       ///< statistics in f64
  bool rereads = false;       ///< a phase reads an X-sized tensor that one before it has read
  bool maybe = false;         ///< a sweep of a line is left out where its condition does not hold
  bool peels = false;         ///< every phase can do with operands that begin anywhere and still make wide accesses
  bool alike = false;         ///< the same if runs stay in registers: some phases take rows that begin alike
};
Form formOf(KernelOp);
/// Of the kernel that would be planned; legal strategies only.
Form formOf(const Problem&, Strategy);

/// Why the schedule does not fit kernel and architecture, with the numbers; nothing where it does.
std::optional<std::string> whyIllegal(const Form&, const Schedule&, const Arch&);

/// A good guess from sizes alone; legal wherever a legal one exists.
Schedule defaultSchedule(const Form&, const Arch&, Strategy);

Schedule defaultSchedule(const Problem&, const Arch&, Strategy);

/// Rows up to which a kernel whose blocks have whole columns is worth its place beside one that spreads them: they
/// stay in registers, and one launch of few blocks ends before three of many would.
int64_t rowsOfResident(const Form&, const Schedule&);

/// Whether a sweep of the slab finds on chip what the sweeps before it have read. Columns do for `heldRows`, of any
/// number: here they do not.
bool keeps(SlabOp, const Schedule&);

/// Rows of a column that stay on chip between sweeps.
int64_t heldRows(const Schedule&);

/// The same kernel for operands of any alignment and length: elements one by one.
Schedule unaligned(const Schedule&);

/// Whether runs of the phase may be peeled (TeamPeel.cpp): each thread's elements are its own affair, since nothing is
/// summed per feature, and a run of known length has something left between its ends.
bool peels(PhaseOp, const Schedule&);
/// Whether no operands are aligned, since runs begin where no access may: the code for any alignment is the only one.
bool alwaysPeels(const Form&, const Schedule&);
/// A run of known length that is shorter is not worth it: up to nine accesses of its ends may be single elements.
inline int64_t leastPeeled(int64_t vector) { return 3 * vector + 15; }

/// The same kernel, peeled.
Schedule peeled(const Schedule&);

/// Whether the phase's tasks may take rows that begin alike (TeamAlike.cpp), since a thread has the same features in all
/// of its rows: rows with sums per feature that stay in registers, and streams.
bool takesRowsAlike(PhaseOp, const Schedule&);
/// The same phase, of such rows, with that many sums per feature.
Schedule alike(const Schedule&, int64_t partials);
int64_t partialsOf(PhaseOp);
/// Floats between the columns of the shared memory that sums of such rows are turned round in, beside a block's threads
/// (an access's elements each), so that no bank is asked twice; how many such buffers a block has.
inline int64_t pitchOfAlike(int64_t vector) { return std::max<int64_t>(1, 32 / vector); }
int64_t turningBuffers(const Schedule&);

/// How a phase is launched: blocks of `threads`, `columns` features to one (0: all), registers for `blocks` on a
/// multiprocessor, `cluster` or `grid` blocks to a task.
struct Launch {
  int64_t threads = 256, columns = 0, blocks = 0, cluster = 1, grid = 1;
  int64_t shared = 0;  ///< dynamic shared memory, for runs that are copied ahead or do not fit registers
};
Launch launchOf(PhaseOp, const Schedule&);

/// Blocks that may wait for each other, as a device of the architecture holds them at once, and tasks that are so many.
int64_t blocksTogether(const Schedule&, const Arch&);
int64_t tasksTogether(const Schedule&, const Arch&);

/// Units (rows, runs) that a block of the phase has under way in one step.
int64_t unitsPerStep(PhaseOp, const Schedule&);

/// Steps that copies to shared memory are ahead of what is computed (TeamAhead.cpp); 0: nothing is copied.
inline int64_t copiedAhead(const Schedule& s) { return s.prefetch > 4 ? s.prefetch - 4 : s.prefetch > 1 ? s.prefetch - 1 : 0; }
/// Whether one thread has whole pieces of a run copied (TeamBulk.cpp).
inline bool copiesInBulk(const Schedule& s) { return s.prefetch > 4; }
/// What one copy brings.
inline constexpr int64_t kCopiedBytes = 16;
/// Dynamic shared memory of a block with `reads` X-sized tensors: what copies ahead of registers take (TeamAhead.cpp), and
/// behind it what runs do beyond their tile, and its `partials` sums per feature (TeamShared.cpp).
int64_t copiedBytes(const Schedule&, int64_t reads);
int64_t sharedRunBytes(const Schedule&, int64_t reads, int64_t dataBytes);
int64_t sharedSumBytes(const Schedule&, int64_t partials);
/// All of it, in the phase that has the form's lines.
inline int64_t dynamicBytes(const Form& form, const Schedule& s) {
  return copiedBytes(s, form.reads) + sharedRunBytes(s, form.reads, form.dataBytes) + sharedSumBytes(s, form.partials);
}
/// X-sized tensors that every step of the slab reads.
llvm::SmallVector<TensorOp> readAlways(SlabOp);

/// Whether the phase streams over rows that a phase before it has read. It is cut alike, and goes through blocks, columns
/// and rows the other way round: what was read last is read first, while the second-level cache has it.
bool readsAgain(PhaseOp);

/// X-sized tensors that a phase is the last to access, and only once, where the schedule gives hints.
llvm::SmallVector<TensorOp> streamedIn(PhaseOp, const Schedule&);

/// Bytes of one access to an X-sized tensor: what pointers, strides and lengths have to be multiples of.
int64_t accessBytes(KernelOp, const Schedule&);

/// Features that one block of a stream or of columns works on.
inline int64_t columnsOf(const Schedule& s) { return s.team * s.vector * std::max<int64_t>(s.tile, 1); }

}  // namespace normc::codegen::cuda
