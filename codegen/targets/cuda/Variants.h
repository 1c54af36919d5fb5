// The schedules of one kernel for operands that are not aligned: single elements, peeled runs, congruent
// rows.
#pragma once

#include "codegen/targets/cuda/Traits.h"

namespace normc::codegen::cuda {

/// Returns the schedule without knobs that take registers: addresses of many single elements take them.
Schedule ofElements(const Schedule&);

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
/// Returns the padding, in floats, of a column of the shared memory in which sums of congruent rows are
/// transposed: it avoids bank conflicts. A column has an element for each thread of the block.
inline int64_t transposePitch(int64_t vector) { return std::max<int64_t>(1, 32 / vector); }
/// Returns the bytes of such a buffer, and how many of them a block has.
int64_t transposedBytes(const Schedule&);
int64_t transposeBuffers(const Schedule&);

}  // namespace normc::codegen::cuda
