/* Trains scale and bias of a layer norm by gradient descent, in C99 over the C API.
 *
 *   train PACKAGE.npk
 *
 * The package must hold layer_norm, forward and backward, f32, for any or for 8 features. The program first
 * compares the gradients with finite differences of the loss, then takes 200 steps towards a target that the
 * norm can reach.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <normc/normc.h>

enum { ROWS = 32, FEATURES = 8, STEPS = 200 };

static void must(normc_status status) {
  if (status == NORMC_OK) return;
  fprintf(stderr, "%s: %s\n", normc_status_name(status), normc_last_error());
  exit(1);
}

/* Tensors are views of plain arrays. */
static int64_t matrixShape[2] = {ROWS, FEATURES};
static int64_t vectorShape[1] = {FEATURES};

static DLTensor tensor(float* data, int32_t dimensions, int64_t* shape) {
  DLTensor result = {0};
  result.data = data;
  result.device.device_type = kDLCPU;
  result.ndim = dimensions;
  result.dtype.code = kDLFloat;
  result.dtype.bits = 32;
  result.dtype.lanes = 1;
  result.shape = shape;
  return result;
}

static float x[ROWS * FEATURES], y[ROWS * FEATURES], target[ROWS * FEATURES];
static float dy[ROWS * FEATURES], dx[ROWS * FEATURES];
static float scale[FEATURES], bias[FEATURES], dscale[FEATURES], dbias[FEATURES];

static normc_plan *forward, *backward;
static normc_args forwardArgs, backwardArgs;

/* Half the mean squared distance to the target; leaves its gradient in dy. */
static double loss(void) {
  double sum = 0;
  int i;
  must(normc_execute(forward, &forwardArgs));
  for (i = 0; i < ROWS * FEATURES; ++i) {
    dy[i] = (y[i] - target[i]) / (ROWS * FEATURES);
    sum += 0.5 * (y[i] - target[i]) * dy[i];
  }
  return sum;
}

/* How far a gradient is from a finite difference of the loss. */
static double gradientError(float* parameter, float gradient) {
  const float before = *parameter, step = 1e-2f;
  double above, below;
  *parameter = before + step;
  above = loss();
  *parameter = before - step;
  below = loss();
  *parameter = before;
  return fabs((above - below) / (2 * step) - gradient);
}

static double checkGradients(void) {
  double worst = 0;
  int i;
  loss();
  must(normc_execute(backward, &backwardArgs));
  for (i = 0; i < FEATURES; ++i) {
    worst = fmax(worst, gradientError(&scale[i], dscale[i]));
    worst = fmax(worst, gradientError(&bias[i], dbias[i]));
    worst = fmax(worst, gradientError(&x[i], dx[i]));
  }
  return worst;
}

static float random1(void) { return 2 * ((float)rand() / (float)RAND_MAX) - 1; }

static normc_plan* plan(const normc_package* package, const char* problem) {
  normc_request request = {0};
  normc_plan* result;
  request.struct_size = sizeof request;
  request.problem = problem;
  must(normc_plan_create(package, &request, &result));
  return result;
}

int main(int argc, char** argv) {
  normc_context* context;
  normc_package* package;
  normc_sizes sizes = {sizeof(normc_sizes), 1, ROWS, FEATURES};
  size_t savedBytes, forwardBytes, backwardBytes;
  void *saved, *workspace;
  const char* text;
  double error, first = 0, last = 0;
  int step, i;

  DLTensor tx = tensor(x, 2, matrixShape), ty = tensor(y, 2, matrixShape);
  DLTensor tdy = tensor(dy, 2, matrixShape), tdx = tensor(dx, 2, matrixShape);
  DLTensor tscale = tensor(scale, 1, vectorShape), tbias = tensor(bias, 1, vectorShape);
  DLTensor tdscale = tensor(dscale, 1, vectorShape), tdbias = tensor(dbias, 1, vectorShape);

  if (argc != 2) {
    fprintf(stderr, "usage: %s PACKAGE.npk\n", argv[0]);
    return 2;
  }

  must(normc_context_create(NULL, &context));
  must(normc_package_open(context, argv[1], &package));
  forward = plan(package, "layer_norm:forward@f32[*x8]");
  backward = plan(package, "layer_norm:backward@f32[*x8]");
  must(normc_plan_describe(forward, &text));
  printf("%s\n", text);

  /* The caller owns all memory that a call uses. */
  must(normc_plan_saved_bytes(forward, &sizes, &savedBytes));
  must(normc_plan_workspace_bytes(forward, &sizes, &forwardBytes));
  must(normc_plan_workspace_bytes(backward, &sizes, &backwardBytes));
  if (backwardBytes < forwardBytes) backwardBytes = forwardBytes;
  saved = malloc(savedBytes + 1);
  workspace = malloc(backwardBytes + 1);
  if (!saved || !workspace) return 1;

  forwardArgs.struct_size = sizeof forwardArgs;
  forwardArgs.x = &tx;
  forwardArgs.scale = &tscale;
  forwardArgs.bias = &tbias;
  forwardArgs.y = &ty;
  forwardArgs.saved = saved;
  forwardArgs.saved_bytes = savedBytes;
  forwardArgs.workspace = workspace;
  forwardArgs.workspace_bytes = backwardBytes;

  backwardArgs = forwardArgs;
  backwardArgs.y = NULL;
  backwardArgs.bias = NULL;
  backwardArgs.dy = &tdy;
  backwardArgs.dx = &tdx;
  backwardArgs.dscale = &tdscale;
  backwardArgs.dbias = &tdbias;

  /* A target that some scale and bias produce exactly. */
  srand(1);
  for (i = 0; i < ROWS * FEATURES; ++i) x[i] = random1();
  for (i = 0; i < FEATURES; ++i) {
    scale[i] = 1 + random1();
    bias[i] = random1();
  }
  must(normc_execute(forward, &forwardArgs));
  for (i = 0; i < ROWS * FEATURES; ++i) target[i] = y[i];
  for (i = 0; i < FEATURES; ++i) {
    scale[i] = 1;
    bias[i] = 0;
  }

  error = checkGradients();
  printf("largest gradient error against finite differences: %.1e\n", error);
  for (step = 0; step < STEPS; ++step) {
    last = loss();
    if (step == 0) first = last;
    must(normc_execute(backward, &backwardArgs));
    for (i = 0; i < FEATURES; ++i) {
      scale[i] -= FEATURES * 0.5f * dscale[i];
      bias[i] -= FEATURES * 0.5f * dbias[i];
    }
  }
  printf("loss: %.3e before, %.3e after %d steps\n", first, last, STEPS);

  free(workspace);
  free(saved);
  normc_plan_destroy(backward);
  normc_plan_destroy(forward);
  normc_package_destroy(package);
  normc_context_destroy(context);
  if (error < 1e-4 && last < 1e-3 * first) return 0;
  printf("FAILED: the gradients or the training are wrong\n");
  return 1;
}
