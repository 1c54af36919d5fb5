/* Normalizes four rows by a compiled LayerNorm, in C99 over the C API.
 *
 *   normc compile layer_norm -o norms.npk && first norms.npk
 */
#include <math.h>
#include <normc/normc.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4, FEATURES = 8 };

static void must(normc_status status) {
  if (status == NORMC_OK) return;
  fprintf(stderr, "%s: %s\n", normc_status_name(status), normc_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  float x[ROWS * FEATURES], y[ROWS * FEATURES], scale[FEATURES], bias[FEATURES];
  int64_t shape[2] = {ROWS, FEATURES}, features[1] = {FEATURES};
  DLTensor tx = {0}, ty, tscale, tbias;
  normc_context* context;
  normc_package* package;
  normc_plan* plan;
  normc_request request = {0};
  normc_args args = {0};
  normc_sizes sizes = {sizeof(normc_sizes), 1, ROWS, FEATURES};
  double sum = 0, squares = 0;
  int i;
  if (argc != 2) return fprintf(stderr, "usage: %s PACKAGE.npk\n", argv[0]), 2;
  for (i = 0; i < ROWS * FEATURES; ++i) x[i] = (float)sin(i);
  for (i = 0; i < FEATURES; ++i) scale[i] = 1, bias[i] = 0;

  must(normc_context_create(NULL, &context)); /* what a host provides: here nothing */
  must(normc_package_open(context, argv[1], &package));
  request.struct_size = sizeof request;
  request.problem = "layer_norm:forward@f32[*x8]";
  must(normc_plan_create(package, &request, &plan)); /* the best kernel for this processor */

  tx.data = x, tx.device.device_type = kDLCPU, tx.ndim = 2, tx.shape = shape;
  tx.dtype.code = kDLFloat, tx.dtype.bits = 32, tx.dtype.lanes = 1;
  ty = tx, ty.data = y;
  tscale = tx, tscale.data = scale, tscale.ndim = 1, tscale.shape = features;
  tbias = tscale, tbias.data = bias;
  args.struct_size = sizeof args;
  args.x = &tx, args.scale = &tscale, args.bias = &tbias, args.y = &ty; /* no backward follows: no saved */
  must(normc_plan_workspace_bytes(plan, &sizes, &args.workspace_bytes));
  args.workspace = malloc(args.workspace_bytes);
  must(normc_execute(plan, &args));

  for (i = 0; i < FEATURES; ++i) sum += y[i], squares += y[i] * y[i];
  printf("the first row has mean %.1e and variance %.5f\n", sum / FEATURES, squares / FEATURES);
  free(args.workspace);
  normc_plan_destroy(plan), normc_package_destroy(package), normc_context_destroy(context);
  return !(fabs(sum / FEATURES) < 1e-6 && fabs(squares / FEATURES - 1) < 1e-3);
}
