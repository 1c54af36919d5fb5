/* A dlopen that answers every file of /proc/self/fd with the first that it has loaded. Preloaded by LoadTest. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) void* dlopen(const char* name, int mode) {
  static char first[4096];
  void* (*const real)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  if (!name || strncmp(name, "/proc/self/fd/", 14) != 0 || strlen(name) >= sizeof first) return real(name, mode);
  if (!first[0]) strcpy(first, name);
  return real(first, mode);
}
