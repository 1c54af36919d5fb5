// The properties of a planned kernel, its phases and its slabs that decide about schedules.
#pragma once

#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen::cuda {

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
  bool heldMixed = false;           ///< these vectors have elements of several widths
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

/// True if a sweep of the slab finds on chip what the sweeps before it have read. False for columns, which
/// keep `heldRows` of any number of rows.
bool keeps(SlabOp, const Schedule&);

/// True if a thread of the slab reads elements besides those that it holds: the mates of pairs, or the blocks
/// of codes.
bool readsElsewhere(SlabOp);

/// True if the phase streams over rows that a phase before it has read. It has the same tasks and walks
/// blocks, columns and rows backwards: what was read last is read first, while the second-level cache still
/// has it.
bool readsAgain(PhaseOp);

/// Returns the X-sized tensors that the phase is the last to access, and only once; none unless the schedule
/// has hints.
llvm::SmallVector<TensorOp> lastAccessed(PhaseOp, const Schedule&);

/// Returns the bytes of an element of the X-sized tensor with the widest ones; 0 if there is no such tensor.
int64_t widestBytes(KernelOp);
/// Returns the bytes of one access to the X-sized tensor with the widest elements. Its pointer, strides and
/// length must be multiples of it, those of a tensor with narrower elements of as many elements.
int64_t accessBytes(KernelOp, const Schedule&);

/// Returns the sums per feature of all sweeps of a phase.
int64_t partialsOf(PhaseOp);

/// True if nothing is summed per feature and every slab walks runs, so that a thread may have other features
/// in each row.
bool isPeelable(PhaseOp);
/// True if the phase walks whole rows in one slab, besides that of the pilot rows, and a thread has the same
/// features in all of them.
bool isCongruent(PhaseOp);

}  // namespace normc::codegen::cuda
