/* The tuner's library is found, and says what it lacks. */
#include <normc/normc_tuner.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  normc_tuner* tuner;
  const normc_status status = normc_tuner_open("no such bundle", NULL, &tuner);
  puts(normc_tuner_last_error());
  return status == NORMC_NOT_FOUND && strstr(normc_tuner_last_error(), "no such bundle") ? 0 : 1;
}
