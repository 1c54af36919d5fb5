/* How the runtime calls a kernel: the only contract of the runtime and generated code,
 * whichever generator made it.
 *
 * A kernel is a list of phases, each an exported function of the shared object.
 * A phase is cut into tasks; tasks of one phase may run in any order and on any
 * threads, a phase starts when the one before has finished. How many tasks there
 * are follows from the problem and the schedule alone, never from the number of
 * threads, so results are bitwise equal for any of it.
 *
 * The manifest of the package gives the order of operands and scalars, and
 * how the units of each phase are cut (docs/package-format.md).
 */
#ifndef NORMC_ABI_KERNEL_H
#define NORMC_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever the layout of the structs below changes. */
#define NORMC_KERNEL_ABI 1

/* One tensor or vector. Strides are in elements and only mean something for
 * X-sized operands, as x is: the element of segment s, row r, feature f is
 *   features_last    data[s * segment_stride + r * row_stride + f]
 *   channels_first   data[s * segment_stride + f * row_stride + r]
 * (row_stride is the pitch of the axis next to the contiguous one). An X-sized
 * input that the caller leaves out is one row of zeros along the contiguous axis, with
 * both strides 0. Vectors of features, one or one for each segment, have no
 * gaps. A mask has one byte per row, contiguous, and a segment_stride. Of a field of partials,
 * row_stride is the distance between one partial and the next, in doubles, and
 * segment_stride the number of partials. `task_stride`
 * is added once per task number to outputs: 0, unless the runtime gives
 * each task its own scratch because the caller does not want the output. */
typedef struct normc_operand {
  void* data;
  int64_t segment_stride;
  int64_t row_stride;
  int64_t task_stride;
} normc_operand;

/* How one phase is cut: chunk t covers units [t * chunk_units, min(units, ...)). */
typedef struct normc_cut {
  int64_t units;
  int64_t chunk_units;
  int64_t chunks;
} normc_cut;

typedef struct normc_kernel_args {
  const normc_operand* operand; /* in the manifest's order */
  const double* scalar;         /* in the manifest's order */
  const normc_cut* cut;         /* one per phase */
  int64_t segments;
  int64_t rows; /* of one segment */
  int64_t features;
} normc_kernel_args;

/* task: 0 <= task < cut[phase].chunks. Never fails, never throws, allocates nothing. */
typedef void (*normc_phase)(const normc_kernel_args* args, int64_t task);

#ifdef __cplusplus
}
#endif
#endif
