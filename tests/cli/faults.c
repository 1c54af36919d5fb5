/* Makes system calls about files fail, or ends the process in one. Preloaded by FaultTest and KillTest.
 *
 * NORMC_TEST_FAULT is `PROGRAM KIND K WHAT LOG`. In a process called PROGRAM the calls of KIND, a word of the
 * functions below, are counted from 1, and call K does WHAT; each call if K is 0. WHAT is
 *   a number   it fails with this errno
 *   short      it transfers one byte
 *   kill       the process is killed before it
 *   half       the process is killed after half of it is written
 * LOG gets a line for each call of KIND: `+` if it does WHAT, else `-`, a space and the file. A transfer
 * counts if its file is a regular one, or if it stays right (EINTR, short). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(result, name, ...) ((result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

enum What { kNothing, kFail, kShort, kKill, kHalf };

static char wanted[16], logPath[4096];
static enum What what = kNothing;
static int number, error;
static atomic_int calls;

__attribute__((constructor)) static void readSetting(void) {
  const char* const setting = getenv("NORMC_TEST_FAULT");
  char program[64], word[16];
  if (!setting || sscanf(setting, "%63s %15s %d %15s %4095s", program, wanted, &number, word, logPath) != 5)
    return;
  if (strcmp(program, program_invocation_short_name) != 0) return;
  error = atoi(word);
  what = !strcmp(word, "short")  ? kShort
         : !strcmp(word, "kill") ? kKill
         : !strcmp(word, "half") ? kHalf
                                 : kFail;
}

static void note(int met, const char* path) {
  char line[5000];
  const int length = snprintf(line, sizeof line, "%c %s\n", met ? '+' : '-', path);
  const int file =
      (int)syscall(SYS_openat, AT_FDCWD, logPath, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || syscall(SYS_write, file, line, (size_t)length) != length) abort();
  syscall(SYS_close, file);
}

static void pathOf(int file, char path[4096]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, 4095);
  path[length < 0 ? 0 : length] = 0;
}

/* Returns what this call does. */
static enum What next(const char* kind, const char* path) {
  if (what == kNothing || strcmp(kind, wanted) != 0) return kNothing;
  const int call = atomic_fetch_add(&calls, 1) + 1, met = number == 0 || call == number;
  note(met, path ? path : "");
  if (!met) return kNothing;
  if (what == kKill) syscall(SYS_kill, getpid(), SIGKILL);
  errno = error;
  return what;
}

static enum What nextOf(const char* kind, int file) {
  if (what == kNothing || strcmp(kind, wanted) != 0) return kNothing;
  struct stat facts;
  const int staysRight = what == kShort || (what == kFail && error == EINTR);
  if (!staysRight && (syscall(SYS_fstat, file, &facts) != 0 || !S_ISREG(facts.st_mode))) return kNothing;
  char path[4096];
  pathOf(file, path);
  return next(kind, path);
}

/*===-- open ---------------------------------------------------------------===*/

#define OPEN(name)                                                \
  EXPORT int name(const char* path, int flags, ...) {             \
    va_list more;                                                 \
    va_start(more, flags);                                        \
    const mode_t mode = va_arg(more, mode_t);                     \
    va_end(more);                                                 \
    if (next("open", path) == kFail) return -1;                   \
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                 \
  EXPORT FILE* name(const char* path, const char* mode) {           \
    if (next("open", path) == kFail) return NULL;                   \
    return REAL(FILE*, name, const char*, const char*)(path, mode); \
  }
FOPEN(fopen)
FOPEN(fopen64)

EXPORT int memfd_create(const char* name, unsigned flags) {
  return next("open", name) == kFail ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}
EXPORT int pipe2(int ends[2], int flags) {
  return next("open", "a pipe") == kFail ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}
EXPORT char* mkdtemp(char* form) {
  return next("open", form) == kFail ? NULL : REAL(char*, mkdtemp, char*)(form);
}

/*===-- read, write --------------------------------------------------------===*/

static size_t least(size_t bytes) { return bytes < 1 ? bytes : 1; }

EXPORT ssize_t read(int file, void* to, size_t bytes) {
  const enum What now = nextOf("read", file);
  return now == kFail ? -1 : syscall(SYS_read, file, to, now == kShort ? least(bytes) : bytes);
}

#define PREAD(name)                                                                                      \
  EXPORT ssize_t name(int file, void* to, size_t bytes, off_t at) {                                      \
    const enum What now = nextOf("read", file);                                                          \
    return now == kFail ? -1 : syscall(SYS_pread64, file, to, now == kShort ? least(bytes) : bytes, at); \
  }
PREAD(pread)
PREAD(pread64)

EXPORT ssize_t write(int file, const void* from, size_t bytes) {
  const enum What now = nextOf("write", file);
  if (now == kFail) return -1;
  if (now != kHalf) return syscall(SYS_write, file, from, now == kShort ? least(bytes) : bytes);
  syscall(SYS_write, file, from, bytes / 2);
  syscall(SYS_kill, getpid(), SIGKILL);
  return -1;
}

/*===-- fsync, close, link, rename, mmap, a process ------------------------===*/

EXPORT int fsync(int file) { return nextOf("fsync", file) == kFail ? -1 : (int)syscall(SYS_fsync, file); }

EXPORT int close(int file) { /* a file is closed even where that fails */
  const enum What now = nextOf("close", file);
  const int why = errno, result = (int)syscall(SYS_close, file);
  return now == kFail ? (errno = why, -1) : result;
}

EXPORT int rename(const char* from, const char* to) {
  return next("rename", to) == kFail ? -1 : REAL(int, rename, const char*, const char*)(from, to);
}

#define MMAP(name)                                                                           \
  EXPORT void* name(void* at, size_t bytes, int access, int flags, int file, off_t offset) { \
    if (next("mmap", file < 0 ? "memory" : "a file") == kFail) return MAP_FAILED;            \
    return (void*)syscall(SYS_mmap, at, bytes, access, flags, file, offset);                 \
  }
MMAP(mmap)
MMAP(mmap64)

EXPORT int linkat(int fromFolder, const char* from, int toFolder, const char* to, int flags) {
  return next("link", to) == kFail ? -1 : (int)syscall(SYS_linkat, fromFolder, from, toFolder, to, flags);
}

EXPORT int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const argv[], char* const environment[]) {
  if (next("start", path) == kFail) return error;
  return REAL(int, posix_spawn, pid_t*, const char*, const posix_spawn_file_actions_t*,
              const posix_spawnattr_t*, char* const*,
              char* const*)(process, path, actions, attributes, argv, environment);
}
EXPORT pid_t fork(void) { return next("start", "a process") == kFail ? -1 : REAL(pid_t, fork, void)(); }
