/* The probe of kernels.c with another result: code that must not be taken for that one. */
#include "runtime/abi/kernel.h"

__attribute__((visibility("default"))) void probe_forward(const normc_kernel_args* args, int64_t task) {
  const normc_operand *x = &args->operand[0], *y = &args->operand[1];
  const int64_t first = task * args->cut[0].chunk_units, end = first + args->cut[0].chunk_units;
  for (int64_t row = first; row < end && row < args->cut[0].units; ++row)
    for (int64_t f = 0; f < args->features; ++f)
      ((float*)y->data)[row * y->row_stride + f] = -((const float*)x->data)[row * x->row_stride + f];
}
