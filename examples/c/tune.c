/* Tunes a layer at start-up, in C99 over the tuner's C API, and opens the kernel that was found.
 *
 *   tune BUNDLE PROBLEM ROWS [SECONDS]
 *
 * BUNDLE is a folder that `normc tune export` made, with candidates for PROBLEM, e.g.
 * "layer_norm:forward@f32[*x1024]". A second start finds the choice in the bundle's records and measures
 * nothing. A host that has a package anyway would go on with that one where tuning fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include <normc/normc_tuner.h>

/* A host would ask here whether its user wants to go on. */
static int progress(void* ctx, const normc_tuner_status* status) {
  const char** phase = ctx;
  if (*phase != status->phase)
    fprintf(stderr, "%s: %s, %.1f of %.1f s\n", status->problem, status->phase, status->seconds,
            status->budget_seconds);
  *phase = status->phase;
  return 0;
}

int main(int argc, char** argv) {
  const char* phase = NULL;
  normc_tuner_options options = {0};
  normc_tuner_request request = {0};
  normc_tuner_result result = {0};
  normc_request wanted = {0};
  normc_tuner* tuner;
  normc_context* context;
  normc_package* package;
  normc_plan* plan;
  const char* text;

  if (argc < 4) {
    fprintf(stderr, "usage: %s BUNDLE PROBLEM ROWS [SECONDS]\n", argv[0]);
    return 2;
  }
  options.struct_size = sizeof options;
  options.progress = progress;
  options.progress_ctx = &phase;
  request.struct_size = sizeof request;
  request.problem = argv[2];
  request.rows = atoll(argv[3]);
  request.threads = 1;
  request.budget_seconds = argc > 4 ? atof(argv[4]) : 0;
  result.struct_size = sizeof result;

  if (normc_tuner_open(argv[1], &options, &tuner) != NORMC_OK) {
    fprintf(stderr, "%s\n", normc_tuner_last_error());
    return 1;
  }
  if (normc_tuner_run(tuner, &request, &result) != NORMC_OK) {
    fprintf(stderr, "%s\n", normc_tuner_last_error());
    normc_tuner_destroy(tuner);
    return 1;
  }
  printf("%s: %s, %.2f x the default's %.1f us%s\n", request.problem, result.schedule, 1 / result.ratio,
         1e6 * result.default_seconds, result.from_records ? ", as the records say" : "");

  /* The runtime runs it as any other package. */
  wanted.struct_size = sizeof wanted;
  wanted.problem = request.problem;
  if (normc_context_create(NULL, &context) != NORMC_OK ||
      normc_package_open(context, result.package, &package) != NORMC_OK ||
      normc_plan_create(package, &wanted, &plan) != NORMC_OK ||
      normc_plan_describe(plan, &text) != NORMC_OK) {
    fprintf(stderr, "%s\n", normc_last_error());
    return 1;
  }
  printf("%s\n", text);
  normc_plan_destroy(plan);
  normc_package_destroy(package);
  normc_context_destroy(context);
  normc_tuner_destroy(tuner);
  return 0;
}
