/* Compiled as C99 with -pedantic -Werror: the header is C, and struct_size comes first. */
#include <string.h>

#include "runtime/normc.h"

typedef char args_begin_with_their_size[offsetof(normc_args, struct_size) == 0 ? 1 : -1];
typedef char options_begin_with_their_size[offsetof(normc_context_options, struct_size) == 0 ? 1 : -1];
typedef char request_begins_with_its_size[offsetof(normc_request, struct_size) == 0 ? 1 : -1];
typedef char sizes_begin_with_their_size[offsetof(normc_sizes, struct_size) == 0 ? 1 : -1];
typedef char field_begins_with_its_size[offsetof(normc_field, struct_size) == 0 ? 1 : -1];

int normc_test_from_c(void);

int normc_test_from_c(void) {
  normc_context_options options = {0}; /* as the documents write it, with all warnings on */
  normc_context* context = NULL;
  normc_status status;
  options.struct_size = sizeof options;
  status = normc_context_create(&options, &context);
  normc_context_destroy(context);
  return status == NORMC_OK && strcmp(normc_status_name(status), "OK") == 0;
}
