/* Kernels written by hand, in plain C, against runtime/abi/kernel.h: enough to use every kind of operand,
 * phase and cut that the runtime knows. The manifests that go with them are in TestPackage.cpp. */
#include "runtime/abi/kernel.h"

#define EXPORT __attribute__((visibility("default")))

typedef const normc_kernel_args* Args;

static float root(float value) { return __builtin_sqrtf(value); }

static int64_t first(Args args, int phase, int64_t task) { return task * args->cut[phase].chunk_units; }

static int64_t last(Args args, int phase, int64_t task) {
  const int64_t end = (task + 1) * args->cut[phase].chunk_units;
  return end < args->cut[phase].units ? end : args->cut[phase].units;
}

/* Row `row` of all segments, of an X-sized operand; features last. */
static float* line(Args args, int operand, int64_t row, int64_t task) {
  const normc_operand* o = &args->operand[operand];
  return (float*)o->data + row / args->rows * o->segment_stride + row % args->rows * o->row_stride +
         task * o->task_stride;
}

static float* vector(Args args, int operand) { return (float*)args->operand[operand].data; }

/* ------------------------------------------------------------ layer_norm -- */
/* With the operands of forward, for one thread: element `phase` of the first row of a chunk of y is the number of
 * chunks of this phase that ran before it; mean[phase] counts them. */
static void number_chunk(Args args, int phase, int64_t task) {
  line(args, 3, first(args, phase, task), task)[phase] = vector(args, 4)[phase]++;
}
EXPORT void number_first(Args args, int64_t task) { number_chunk(args, 0, task); }
EXPORT void number_second(Args args, int64_t task) { number_chunk(args, 1, task); }
EXPORT void number_third(Args args, int64_t task) { number_chunk(args, 2, task); }

/* forward: x scale bias | y, saved mean rstd; epsilon; one phase over rows. */
EXPORT void layer_norm_forward(Args args, int64_t task) {
  const float *scale = vector(args, 1), *bias = vector(args, 2);
  for (int64_t row = first(args, 0, task); row < last(args, 0, task); ++row) {
    const float* x = line(args, 0, row, 0);
    float* y = line(args, 3, row, task);
    float mean = 0, moment = 0;
    for (int64_t f = 0; f < args->features; ++f) mean += x[f];
    mean /= (float)args->features;
    for (int64_t f = 0; f < args->features; ++f) moment += (x[f] - mean) * (x[f] - mean);
    const float rstd = 1 / root(moment / (float)args->features + (float)args->scalar[0]);
    for (int64_t f = 0; f < args->features; ++f) y[f] = (x[f] - mean) * rstd * scale[f] + bias[f];
    vector(args, 4)[row] = mean;
    vector(args, 5)[row] = rstd;
  }
}

/* backward: x dy scale, saved mean rstd | dx dscale dbias, partials of both; rows, then features. */
EXPORT void layer_norm_backward(Args args, int64_t task) {
  const float* scale = vector(args, 2);
  float* partialScale = vector(args, 8) + task * args->features;
  float* partialBias = vector(args, 9) + task * args->features;
  for (int64_t f = 0; f < args->features; ++f) partialScale[f] = partialBias[f] = 0;
  for (int64_t row = first(args, 0, task); row < last(args, 0, task); ++row) {
    const float *x = line(args, 0, row, 0), *dy = line(args, 1, row, 0);
    const float mean = vector(args, 3)[row], rstd = vector(args, 4)[row];
    float sum = 0, dot = 0;
    for (int64_t f = 0; f < args->features; ++f) {
      const float normal = (x[f] - mean) * rstd;
      sum += dy[f] * scale[f];
      dot += dy[f] * scale[f] * normal;
      partialScale[f] += dy[f] * normal;
      partialBias[f] += dy[f];
    }
    sum /= (float)args->features;
    dot /= (float)args->features;
    float* dx = line(args, 5, row, task);
    for (int64_t f = 0; f < args->features; ++f)
      dx[f] = rstd * (dy[f] * scale[f] - sum - (x[f] - mean) * rstd * dot);
  }
}

static void addPartials(Args args, int operand, int64_t f, float* to) {
  float sum = 0;
  for (int64_t chunk = 0; chunk < args->cut[0].chunks; ++chunk)
    sum += vector(args, operand)[chunk * args->features + f];
  *to = sum;
}

EXPORT void layer_norm_finish(Args args, int64_t task) {
  for (int64_t f = first(args, 1, task); f < last(args, 1, task); ++f) {
    addPartials(args, 8, f, &vector(args, 6)[f]);
    addPartials(args, 9, f, &vector(args, 7)[f]);
  }
}

/* ------------------------------------------------------------ power_norm -- */
/* forward: x scale bias, psi2 step | y, saved rstd second_moment, psi2 step, partials; epsilon decay. */
EXPORT void power_norm_forward(Args args, int64_t task) {
  const float *scale = vector(args, 1), *bias = vector(args, 2), *psi2 = vector(args, 3);
  float* partial = vector(args, 10) + task * args->features;
  for (int64_t f = 0; f < args->features; ++f) partial[f] = 0;
  for (int64_t row = first(args, 0, task); row < last(args, 0, task); ++row) {
    const float* x = line(args, 0, row, 0);
    float* y = line(args, 5, row, task);
    for (int64_t f = 0; f < args->features; ++f) {
      const float value = x[f]; /* y may be x */
      y[f] = value / root(psi2[f] + (float)args->scalar[0]) * scale[f] + bias[f];
      partial[f] += value * value;
    }
  }
}

EXPORT void power_norm_finish(Args args, int64_t task) {
  const float a = (float)args->scalar[1];
  const float* psi2 = vector(args, 3);
  const int64_t rows = args->segments * args->rows;
  for (int64_t f = first(args, 1, task); f < last(args, 1, task); ++f) {
    float sum;
    addPartials(args, 10, f, &sum);
    const float q = rows > 0 ? sum / (float)rows : 0;
    vector(args, 6)[f] = 1 / root(psi2[f] + (float)args->scalar[0]);
    vector(args, 7)[f] = q;
    vector(args, 8)[f] = rows > 0 ? a * psi2[f] + (1 - a) * q : psi2[f];
  }
  if (task == 0) *(int64_t*)args->operand[9].data = *(const int64_t*)args->operand[4].data + (rows > 0);
}

/* backward: x dy scale, nu, saved rstd second_moment | dx dscale dbias, nu, two partials; backward_decay. */
EXPORT void power_norm_backward(Args args, int64_t task) {
  const float *scale = vector(args, 2), *nu = vector(args, 3), *rstd = vector(args, 4);
  float* partialScale = vector(args, 10) + task * args->features;
  float* partialBias = vector(args, 11) + task * args->features;
  for (int64_t f = 0; f < args->features; ++f) partialScale[f] = partialBias[f] = 0;
  for (int64_t row = first(args, 0, task); row < last(args, 0, task); ++row) {
    const float *x = line(args, 0, row, 0), *dy = line(args, 1, row, 0);
    float* dx = line(args, 6, row, task);
    for (int64_t f = 0; f < args->features; ++f) {
      const float normal = x[f] * rstd[f], gradient = dy[f];
      partialScale[f] += gradient * normal;
      partialBias[f] += gradient;
      dx[f] = rstd[f] * (gradient * scale[f] - nu[f] * normal);
    }
  }
}

EXPORT void power_norm_backward_finish(Args args, int64_t task) {
  const float *scale = vector(args, 2), *nu = vector(args, 3), *rstd = vector(args, 4), *q = vector(args, 5);
  const float weight = 1 - (float)args->scalar[0];
  const int64_t rows = args->segments * args->rows;
  for (int64_t f = first(args, 1, task); f < last(args, 1, task); ++f) {
    addPartials(args, 10, f, &vector(args, 7)[f]);
    addPartials(args, 11, f, &vector(args, 8)[f]);
    const float lambda = rows > 0 ? scale[f] * vector(args, 7)[f] / (float)rows : 0;
    const float gamma = q[f] * rstd[f] * rstd[f];
    vector(args, 9)[f] = nu[f] * (1 - weight * gamma) + weight * lambda;
  }
}

/* ----------------------------------------------------------------- probe -- */
/* y = x * factor, where the mask (operand 2, if scalar[1] says there is one) is not 0; else 0. Any layout:
 * `outer` counts segments x middle axis. */
EXPORT void probe_forward(Args args, int64_t task) {
  const normc_operand *x = &args->operand[0], *y = &args->operand[1];
  const unsigned char* mask = 0;
  if (args->scalar[1] != 0) mask = (const unsigned char*)args->operand[2].data;
  const int channelsFirst = args->scalar[2] != 0;
  const int64_t middle = channelsFirst ? args->features : args->rows;
  const int64_t inner = channelsFirst ? args->rows : args->features;
  for (int64_t unit = first(args, 0, task); unit < last(args, 0, task); ++unit) {
    const int64_t s = unit / middle, m = unit % middle;
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t row = channelsFirst ? i : m;
      const float value = ((const float*)x->data)[s * x->segment_stride + m * x->row_stride + i];
      ((float*)y->data)[s * y->segment_stride + m * y->row_stride + i] =
          !mask || mask[s * args->operand[2].segment_stride + row] ? value * (float)args->scalar[0] : 0;
    }
  }
}

/* state_in step | state_out step of a first phase. */
EXPORT void count_step(Args args, int64_t task) {
  *(int64_t*)args->operand[3].data = *(const int64_t*)args->operand[1].data + 1 + task;
}

/* Two phases of which the first is for warmup alone: state_in step | y, state_out warmed. */
EXPORT void warmup_statistics(Args args, int64_t task) {
  *(float*)args->operand[3].data += 1 + 0 * (float)task;
}

EXPORT void warmup_apply(Args args, int64_t task) {
  for (int64_t row = first(args, 1, task); row < last(args, 1, task); ++row)
    for (int64_t f = 0; f < args->features; ++f) line(args, 2, row, task)[f] = line(args, 0, row, 0)[f];
}

/* ------------------------------------------------------------------ sums -- */
/* forward_reduce: x | partial rows, squares; one task. */
EXPORT void sums_forward_reduce(Args args, int64_t task) {
  double *rows = args->operand[1].data, *squares = args->operand[2].data;
  *rows = (double)(args->segments * args->rows);
  for (int64_t f = 0; f < args->features; ++f) {
    squares[f] = 0;
    for (int64_t row = 0; row < args->segments * args->rows; ++row)
      squares[f] += (double)line(args, 0, row, task)[f] * line(args, 0, row, task)[f];
  }
}

/* commit: partials rows, squares | state psi2; one task. */
EXPORT void sums_commit(Args args, int64_t task) {
  const normc_operand *rows = &args->operand[0], *squares = &args->operand[1];
  (void)task;
  for (int64_t f = 0; f < args->features; ++f) {
    double n = 0, sum = 0;
    for (int64_t i = 0; i < rows->segment_stride; ++i) {
      n += ((const double*)rows->data)[i * rows->row_stride];
      sum += ((const double*)squares->data)[i * squares->row_stride + f];
    }
    vector(args, 2)[f] = (float)(sum / n);
  }
}

/* ---------------------------------------------------------------- around -- */
/* forward: x residual gate mod_scale mod_shift | residual_out y; one phase over rows. */
EXPORT void around_forward(Args args, int64_t task) {
  for (int64_t row = first(args, 0, task); row < last(args, 0, task); ++row) {
    const int64_t segment = row / args->rows * args->features;
    const float *x = line(args, 0, row, 0), *residual = line(args, 1, row, 0), *gate = vector(args, 2),
                *scale = vector(args, 3) + segment, *shift = vector(args, 4) + segment;
    float *out = line(args, 5, row, task), *y = line(args, 6, row, task);
    for (int64_t f = 0; f < args->features; ++f) {
      const float h = x[f] + residual[f];
      out[f] = h;
      y[f] = gate[f] * ((1 + scale[f]) * h + shift[f]);
    }
  }
}

/* backward: dy residual_out gate mod_scale mod_shift dresidual_out | dx dgate dmod_scale dmod_shift, partials
 * of dgate; segments, then features. */
EXPORT void around_backward(Args args, int64_t task) {
  const float* gate = vector(args, 2);
  float* partial = vector(args, 10) + task * args->features;
  for (int64_t f = 0; f < args->features; ++f) partial[f] = 0;
  for (int64_t segment = first(args, 0, task); segment < last(args, 0, task); ++segment) {
    const int64_t at = segment * args->features;
    const float *scale = vector(args, 3) + at, *shift = vector(args, 4) + at;
    float *dscale = vector(args, 8) + at, *dshift = vector(args, 9) + at;
    for (int64_t f = 0; f < args->features; ++f) dscale[f] = dshift[f] = 0;
    for (int64_t row = segment * args->rows; row < (segment + 1) * args->rows; ++row) {
      const float *dy = line(args, 0, row, 0), *h = line(args, 1, row, 0), *more = line(args, 5, row, 0);
      float* dx = line(args, 6, row, task);
      for (int64_t f = 0; f < args->features; ++f) {
        const float gradient = dy[f], dm = gradient * gate[f];
        partial[f] += gradient * ((1 + scale[f]) * h[f] + shift[f]);
        dscale[f] += dm * h[f];
        dshift[f] += dm;
        dx[f] = dm * (1 + scale[f]) + more[f];
      }
    }
  }
}

EXPORT void around_finish(Args args, int64_t task) {
  for (int64_t f = first(args, 1, task); f < last(args, 1, task); ++f)
    addPartials(args, 10, f, &vector(args, 7)[f]);
}
