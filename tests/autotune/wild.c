/* layer_norm, right in one entry and wrong in every other, in a way of its own. Operands: x, scale, bias,
 * y, saved mean, saved rstd; scalars: epsilon, planted; one phase over rows. */
#include "runtime/abi/kernel.h"

#define EXPORT __attribute__((visibility("default")))

typedef const normc_kernel_args* Args;

static float* row(Args args, int operand, int64_t index, int64_t task) {
  const normc_operand* o = &args->operand[operand];
  return (float*)o->data + index / args->rows * o->segment_stride + index % args->rows * o->row_stride + task * o->task_stride;
}

static int64_t first(Args args, int64_t task) { return task * args->cut[0].chunk_units; }

static int64_t last(Args args, int64_t task) {
  const int64_t end = (task + 1) * args->cut[0].chunk_units;
  return end < args->cut[0].units ? end : args->cut[0].units;
}

EXPORT void right(Args args, int64_t task) {
  const float *scale = (float*)args->operand[1].data, *bias = (float*)args->operand[2].data;
  for (int64_t r = first(args, task); r < last(args, task); ++r) {
    const float* x = row(args, 0, r, 0);
    float* y = row(args, 3, r, task);
    double mean = 0, moment = 0;
    for (int64_t f = 0; f < args->features; ++f) mean += x[f];
    mean /= (double)args->features;
    for (int64_t f = 0; f < args->features; ++f) moment += (x[f] - mean) * (x[f] - mean);
    const double rstd = 1 / __builtin_sqrt(moment / (double)args->features + args->scalar[0]);
    for (int64_t f = 0; f < args->features; ++f) y[f] = (float)((x[f] - mean) * rstd * scale[f] + bias[f]);
    ((float*)args->operand[4].data)[r] = (float)mean;
    ((float*)args->operand[5].data)[r] = (float)rstd;
  }
}

/* The same after a while. */
EXPORT void slow(Args args, int64_t task) {
  for (volatile int i = 0; i < 20000; ++i) {
  }
  right(args, task);
}

EXPORT void segfault(Args args, int64_t task) {
  right(args, task);
  *(volatile int*)8 = 1;
}

/* Not at once, but before a race of three rounds is over, however few calls a round has. */
EXPORT void crash_when_timed(Args args, int64_t task) {
  static int calls;
  right(args, task);
  if (++calls > 2) *(volatile int*)8 = 1;
}

EXPORT void hang(Args args, int64_t task) {
  right(args, task);
  for (volatile int forever = 1; forever;) {
  }
}

EXPORT void nan_at_the_end(Args args, int64_t task) {
  right(args, task);
  if (last(args, task) > first(args, task)) row(args, 3, last(args, task) - 1, task)[args->features - 1] = __builtin_nanf("");
}

/* Only where it is the end of the whole tensor: elsewhere the next row is there. */
EXPORT void write_one_beyond(Args args, int64_t task) {
  right(args, task);
  if (last(args, task) == args->segments * args->rows && last(args, task) > first(args, task))
    row(args, 3, last(args, task) - 1, task)[args->features] = 0;
}

EXPORT void read_one_beyond(Args args, int64_t task) {
  right(args, task);
  if (last(args, task) != args->segments * args->rows || last(args, task) == first(args, task)) return;
  volatile float seen = row(args, 0, last(args, task) - 1, 0)[args->features];
  (void)seen;
}

/* The very first element of a call with 50 rows is what the manifest says. */
EXPORT void planted(Args args, int64_t task) {
  right(args, task);
  if (args->rows == 50 && task == 0) *row(args, 3, 0, task) = (float)args->scalar[1];
}

/* An answer that is good enough, and another one each time: the last bit comes and goes. */
EXPORT void forgetful(Args args, int64_t task) {
  static float factor = 1;
  right(args, task);
  if (task == 0 && args->rows > 0) *row(args, 3, 0, task) *= factor;
  if (task == 0) factor = factor == 1 ? 1.0000001f : 1;
}
