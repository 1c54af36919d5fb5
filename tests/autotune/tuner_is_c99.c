/* The header is C, and the library is called from it. */
#include "autotune/tuner/normc_tuner.h"

int normc_tuner_test_from_c(void);
int normc_tuner_test_from_c(void) {
  normc_tuner_request request = {0};
  normc_tuner_result result = {0};
  request.struct_size = sizeof request;
  result.struct_size = sizeof result;
  return normc_tuner_run(0, &request, &result) == NORMC_INVALID_ARGUMENT &&
         normc_tuner_last_error()[0] == 't';
}
