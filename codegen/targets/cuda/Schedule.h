// The knobs of the CUDA target: how the sweeps of a kernel are spread over threads, which values are legal,
// and what a planned kernel has that decides it. Nothing here makes code.
//
// One geometry serves all kinds of slab (docs/cuda.md): a *team* of threads walks along the contiguous axis,
// and the teams of a block take neighbouring units across it. A line has a statistic for each team, a block
// one for its block of threads, a column one for each lane of the team, a stream none.
#pragma once

#include <optional>
#include <string>

#include "codegen/plan/Planner.h"
#include "codegen/targets/cuda/Arch.h"

namespace normc::codegen::cuda {

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
                        ///< Of lines: 1 if scale and bias stay in shared memory for the rows of a task
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

/// The properties of a planned kernel that legality and defaults depend on.
struct KernelTraits {
  bool lines = false, blocks = false, columns = false, streams = false;
  int64_t dataBytes = 4;            ///< of an element of the X-sized tensor with the widest ones
  bool mixed = false;               ///< a slab reads elements that are narrower than these
  int64_t features = 0;             ///< 0: any
  int64_t groups = 1;               ///< of a line: runs that share a row
  bool grouped = false;             ///< features are divided into groups
  int64_t width = 0;                ///< of one run along the contiguous axis; 0: any
  bool turns = false;               ///< a sweep reads the mates of its elements, and the angles of pairs
  int64_t block = 0;                ///< features with one scale of codes; 0: no blocks
  int64_t partials = 0;             ///< sums per feature inside a line or a block
  bool runPartials = false;         ///< some partial is summed along the run, as with channels first
  int64_t runSums = 0;              ///< values that the threads of a line or block combine for each unit
  int64_t runProbes = 0;            ///< shift estimates of a line or block, besides
  int64_t counts = 0;               ///< counts of valid rows, which the threads of a block divide
  int64_t lineSlabs = 0;            ///< slabs of lines in one phase
  int64_t reads = 1;                ///< X-sized tensors that one line or block reads
  int64_t operations = 0;           ///< of a sweep on an element; a function counts as several
  int64_t vectorBytes = 0;          ///< that a line reads for each of its features besides: scale, bias
  int64_t heldBytes = 0;            ///< of those, of vectors that all rows share
  int64_t mostReads = 1;            ///< the same of any slab
  bool backward = false;            ///< there is a dy
  bool updatesState = false;        ///< backward updates a state (nu)
  bool sweepsColumnsTwice = false;  ///< a column is swept for its statistics and then again
  int64_t columnSums = 0;           ///< values that the blocks of a cluster exchange for columns
  bool segmentColumns = false;      ///< a column ends with its segment
  bool f64Statistics = false;       ///< statistics in f64
  bool streamSums = false;          ///< a stream leaves sums per feature
  bool rereads = false;             ///< a phase reads an X-sized tensor that one before it has read
  bool conditional = false;         ///< a sweep of a line has a condition
  bool bySegment = false;           ///< a phase is cut by segment
  int64_t columnReads = 1;          ///< X-sized tensors that a column reads
  bool peelable =
      false;  ///< every phase can peel its runs, so operands may begin anywhere and accesses are wide
  bool congruent = false;  ///< the same if runs stay in registers, because some phases take congruent rows
};
KernelTraits traitsOf(KernelOp);
/// Returns the traits of the kernel that would be planned. The strategy must be legal.
KernelTraits traitsOf(const Problem&, Strategy);

/// Returns why the schedule does not fit kernel and architecture, with the numbers; nothing if it does.
std::optional<std::string> whyIllegal(const KernelTraits&, const Schedule&, const Arch&);

/// Returns a schedule that is chosen from sizes alone. It is legal whenever a legal one exists.
Schedule defaultSchedule(const KernelTraits&, const Arch&, Strategy);

Schedule defaultSchedule(const Problem&, const Arch&, Strategy);

/// A schedule that was measured to be faster than the default for calls of at most so many rows.
struct FewRows {
  Schedule schedule;
  int64_t rowsMax;
};
/// Returns the one of lines; nothing if there is none.
std::optional<FewRows> scheduleForFewRows(const KernelTraits&, const Arch&);

/// Returns the number of rows up to which a kernel whose blocks have whole columns is faster than one that
/// spreads them: rows stay in registers, and one launch of few blocks ends before three of many would.
int64_t rowsOfResident(const KernelTraits&, const Schedule&);

/// True if a sweep of the slab finds on chip what the sweeps before it have read. False for columns, which
/// keep `heldRows` of any number of rows.
bool keeps(SlabOp, const Schedule&);

/// True if a thread of the slab reads elements besides those that it holds: the mates of pairs, or the blocks
/// of codes.
bool readsElsewhere(SlabOp);

/// Returns the rows of a column that stay on chip between sweeps.
int64_t heldRows(const Schedule&);

/// Returns the schedule of the same kernel for operands of any alignment and length: it accesses single
/// elements.
Schedule unaligned(const Schedule&);

/// True if runs of the phase may be peeled (PeeledRuns.cpp): nothing is summed per feature, so a thread may
/// have other features in each row, and a run of known length is longer than its two ends.
bool peels(PhaseOp, const Schedule&);
/// True if no operands are aligned, because runs begin where no access may. Then the code for any alignment
/// is the only one.
bool alwaysPeels(const KernelTraits&, const Schedule&);
/// Returns the length from which on peeling pays: up to nine accesses at the ends may be single elements.
inline int64_t leastPeeled(int64_t vector) { return 3 * vector + 15; }

/// Returns the schedule of the same kernel with peeled runs.
Schedule peeled(const Schedule&);

/// True if the tasks of the phase take congruent rows (CongruentRuns.cpp), because a thread needs the same
/// features in all of its rows: rows with sums per feature that stay in registers, and streams.
bool takesCongruentRows(PhaseOp, const Schedule&);
/// Returns the schedule with each run on more threads of its block, until congruent rows have registers for
/// their ends.
Schedule spread(const KernelTraits&, const Schedule&);
/// Returns the schedule of the same phase for congruent rows, with that many sums per feature.
Schedule congruent(const Schedule&, int64_t partials);
int64_t partialsOf(PhaseOp);
/// Returns the padding, in floats, of a column of the shared memory in which sums of congruent rows are
/// transposed: it avoids bank conflicts. A column has an element for each thread of the block.
inline int64_t transposePitch(int64_t vector) { return std::max<int64_t>(1, 32 / vector); }
/// Returns the bytes of such a buffer, and how many of them a block has.
int64_t transposedBytes(const Schedule&);
int64_t transposeBuffers(const Schedule&);

/// Returns the folds of a slab over features that its threads may divide (TeamFolds.cpp): they merge, go
/// along the same chunks, and need nothing that the slab computes. Empty if another fold of chunks cannot be
/// divided.
llvm::SmallVector<FoldOp> foldsToDivide(SlabOp);

/// How a phase is launched: blocks of `threads` threads and `columns` features (0: all), registers for
/// `blocks` of them on a multiprocessor, and `cluster` or `grid` blocks to a task. In a phase over
/// features that folds chunks, a feature has `slices` threads.
struct Launch {
  int64_t threads = 256, columns = 0, blocks = 0, cluster = 1, grid = 1, slices = 1;
  int64_t shared =
      0;  ///< bytes of dynamic shared memory, for prefetched runs and those that do not fit registers
};
Launch launchOf(PhaseOp, const Schedule&);

/// Returns how many blocks a device of the architecture holds at once, so that they may wait for each other,
/// and how many tasks these are.
int64_t blocksTogether(const Schedule&, const Arch&);
int64_t tasksTogether(const Schedule&, const Arch&);

/// Returns the units (rows, runs) that a block of the phase processes in one step.
int64_t unitsPerStep(PhaseOp, const Schedule&);

/// Bytes that one asynchronous copy brings, and of an mbarrier.
inline constexpr int64_t kCopiedBytes = 16, kMbarrierBytes = 8;
/// Returns the vectors of features that a line reads in each row and that are the same for all rows: scale
/// and bias. Empty for several groups, and for rows of channels first.
llvm::SmallVector<TensorOp> vectorsOfAllRows(SlabOp);
/// Returns the bytes of these for a feature.
int64_t heldBytes(SlabOp);
/// Return bytes of the dynamic shared memory of a block that reads `reads` X-sized tensors, in their order
/// there: copies of tiles (ReadAhead.h), then what runs have besides their tile, then its `partials` sums per
/// feature (SharedRuns.h), then vectors of `featureBytes` for a feature (SharedVectors.h).
int64_t copiedBytes(const Schedule&, int64_t reads);
int64_t sharedRunBytes(const Schedule&, int64_t reads, int64_t dataBytes);
int64_t sharedSumBytes(const Schedule&, int64_t partials);
int64_t sharedVectorBytes(const Schedule&, int64_t featureBytes);
/// Returns the bytes of shared memory that an entry of the kernel declares at most: what the threads of a
/// block, and the blocks of a cluster, tell each other.
int64_t staticBytes(const KernelTraits&, const Schedule&);
/// Returns those of a slab before its vectors.
int64_t runBytes(SlabOp, const Schedule&);
/// Returns all of these bytes for the phase with the kernel's lines.
inline int64_t dynamicBytes(const KernelTraits& traits, const Schedule& s) {
  return copiedBytes(s, traits.reads) + sharedRunBytes(s, traits.reads, traits.dataBytes) +
         sharedSumBytes(s, traits.partials) + sharedVectorBytes(s, traits.heldBytes);
}
/// Returns the X-sized tensors that every step of the slab reads.
llvm::SmallVector<TensorOp> readAlways(SlabOp);

/// True if the phase streams over rows that a phase before it has read. It has the same tasks and walks
/// blocks, columns and rows backwards: what was read last is read first, while the second-level cache still
/// has it.
bool readsAgain(PhaseOp);

/// Returns the X-sized tensors that the phase is the last to access, and only once; none unless the schedule
/// has hints.
llvm::SmallVector<TensorOp> lastAccessed(PhaseOp, const Schedule&);

/// Returns the bytes of one access to the X-sized tensor with the widest elements. Its pointer, strides and
/// length must be multiples of it, those of a tensor with narrower elements of as many elements.
int64_t accessBytes(KernelOp, const Schedule&);

/// Returns the features that one block of a stream or of columns works on.
inline int64_t columnsOf(const Schedule& s) { return s.team * s.vector * std::max<int64_t>(s.tile, 1); }

}  // namespace normc::codegen::cuda
