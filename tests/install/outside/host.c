/* Runs forward and backward of layer_norm over an installed runtime, and compares with the formulas in double. */
#include <math.h>
#include <normc/normc.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 5, FEATURES = 24 };

static void must(normc_status status) {
  if (status == NORMC_OK) return;
  fprintf(stderr, "%s: %s\n", normc_status_name(status), normc_last_error());
  exit(1);
}

static DLTensor tensor(float* data, int64_t* shape, int dimensions) {
  DLTensor result = {0};
  result.data = data;
  result.device.device_type = kDLCPU;
  result.ndim = dimensions;
  result.dtype.code = kDLFloat, result.dtype.bits = 32, result.dtype.lanes = 1;
  result.shape = shape;
  return result;
}

static normc_plan* plan(const normc_package* package, const char* problem) {
  normc_request request = {0};
  normc_plan* result;
  request.struct_size = sizeof request;
  request.problem = problem;
  must(normc_plan_create(package, &request, &result));
  return result;
}

static void* buffer(normc_status (*query)(const normc_plan*, const normc_sizes*, size_t*), const normc_plan* of,
                    size_t* bytes) {
  normc_sizes sizes = {sizeof sizes, 1, ROWS, FEATURES};
  must(query(of, &sizes, bytes));
  return malloc(*bytes ? *bytes : 1);
}

int main(int argc, char** argv) {
  float x[ROWS * FEATURES], y[ROWS * FEATURES], dy[ROWS * FEATURES], dx[ROWS * FEATURES];
  float scale[FEATURES], bias[FEATURES], dscale[FEATURES], dbias[FEATURES];
  int64_t matrix[2] = {ROWS, FEATURES}, vector[1] = {FEATURES};
  DLTensor tx = tensor(x, matrix, 2), ty = tensor(y, matrix, 2), tdy = tensor(dy, matrix, 2), tdx = tensor(dx, matrix, 2);
  DLTensor ts = tensor(scale, vector, 1), tb = tensor(bias, vector, 1);
  DLTensor tds = tensor(dscale, vector, 1), tdb = tensor(dbias, vector, 1);
  normc_context* context;
  normc_package* package;
  normc_args args = {0};
  double worst = 0;
  int i, r;

  if (argc != 2) return 2;
  args.struct_size = sizeof args;
  for (i = 0; i < ROWS * FEATURES; ++i) x[i] = (float)sin(i) + 3, dy[i] = (float)cos(3 * i);
  for (i = 0; i < FEATURES; ++i) scale[i] = 1 + 0.01f * (float)i, bias[i] = -0.5f;

  must(normc_context_create(NULL, &context));
  must(normc_package_open(context, argv[1], &package));
  normc_plan* forward = plan(package, "layer_norm:forward@f32[*x24]");
  normc_plan* backward = plan(package, "layer_norm:backward@f32[*x24]");
  normc_package_destroy(package); /* plans keep what they need */
  normc_context_destroy(context);

  args.saved = buffer(normc_plan_saved_bytes, forward, &args.saved_bytes);
  args.workspace = buffer(normc_plan_workspace_bytes, forward, &args.workspace_bytes);
  args.x = &tx, args.y = &ty, args.scale = &ts, args.bias = &tb;
  must(normc_execute(forward, &args));

  free(args.workspace);
  args.workspace = buffer(normc_plan_workspace_bytes, backward, &args.workspace_bytes);
  args.y = NULL, args.bias = NULL;
  args.dy = &tdy, args.dx = &tdx, args.dscale = &tds, args.dbias = &tdb;
  must(normc_execute(backward, &args));

  for (r = 0; r < ROWS; ++r) {
    const float *row = x + r * FEATURES, *g = dy + r * FEATURES;
    double mean = 0, variance = 0, h = 0, hx = 0;
    for (i = 0; i < FEATURES; ++i) mean += row[i] / (double)FEATURES;
    for (i = 0; i < FEATURES; ++i) variance += (row[i] - mean) * (row[i] - mean) / FEATURES;
    const double s = 1 / sqrt(variance + 1e-5);
    for (i = 0; i < FEATURES; ++i) {
      h += (double)scale[i] * g[i] / FEATURES;
      hx += (double)scale[i] * g[i] * (row[i] - mean) * s / FEATURES;
    }
    for (i = 0; i < FEATURES; ++i) {
      const double x0 = (row[i] - mean) * s;
      worst = fmax(worst, fabs(scale[i] * x0 + bias[i] - y[r * FEATURES + i]));
      worst = fmax(worst, fabs(s * ((double)scale[i] * g[i] - h - hx * x0) - dx[r * FEATURES + i]));
    }
  }
  printf("normc %s for %s: largest error %g\n", normc_version(), normc_cpu_isa(), worst);
  free(args.saved), free(args.workspace);
  normc_plan_destroy(forward), normc_plan_destroy(backward);
  return worst < 1e-5 ? 0 : 1;
}
