// A package that is opened, loaded and run while each system call of it fails in turn: a status that says
// which file and why, no descriptor that stays, and the same result afterwards. This program's own functions
// stand for the system's.
#if !defined(NORMC_SANITIZED)

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <set>

#include "tests/runtime/Support.h"

namespace {
thread_local int calls = -1;  ///< -1: they are not counted
thread_local int failing = 0, error = 0;
thread_local const char* failed = nullptr;  ///< the name of the call that failed
thread_local bool oneByte = false;          ///< each transfer is of one byte

/// Counts a call. True if it fails.
bool fails(const char* name) {
  if (calls < 0 || ++calls != failing) return false;
  failed = name, errno = error;
  return true;
}
size_t bytesOf(size_t bytes) { return oneByte && calls >= 0 && bytes > 0 ? 1 : bytes; }
}  // namespace

#pragma GCC visibility push(default)  // or the library would not find them
extern "C" {
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  return fails("open") ? -1 : int(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int fstat(int file, struct stat* facts) noexcept {
  return fails("fstat") ? -1 : int(syscall(SYS_fstat, file, facts));
}
ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  return fails("pread") ? -1 : syscall(SYS_pread64, file, to, bytesOf(bytes), at);
}
int memfd_create(const char* name, unsigned flags) noexcept {
  return fails("memfd_create") ? -1 : int(syscall(SYS_memfd_create, name, flags));
}
ssize_t write(int file, const void* from, size_t bytes) {
  return fails("write") ? -1 : syscall(SYS_write, file, from, bytesOf(bytes));
}
int fcntl(int file, int what, ...) {
  va_list more;
  va_start(more, what);
  const long argument = va_arg(more, long);
  va_end(more);
  return fails("fcntl") ? -1 : int(syscall(SYS_fcntl, file, what, argument));
}
void* dlopen(const char* path, int mode) noexcept {
  const auto real = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  return real(fails("dlopen") ? "/there is no such library" : path, mode);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* data) noexcept {
  const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return fails("pthread_create") ? error : real(thread, attributes, run, data);
}
}
#pragma GCC visibility pop

namespace normc::test {
namespace {

int openFiles() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) count += file.exists();
  return count;
}

class FileFault : public testing::Test {
 protected:
  FileFault() : path_(temporaryPath("normc-fault-" + std::to_string(getpid()) + ".npk")) {
    EXPECT_TRUE(packageOf(layerNorm("forward")).write(path_));
  }
  ~FileFault() override { std::filesystem::remove(path_); }

  /// Opens the package with threads of its own, and runs it. Returns its error; y is what it computed.
  std::string run() {
    y_.clear();
    return refusal([&] {
      normc_context_options options = {};
      options.max_threads = 3;
      const host::Context context(options);
      const host::Package package(context, path_);
      const Plan plan(package, "layer_norm:forward@f32[*x*]");
      std::vector<float> x = numbers(64 * 40), scale = numbers(40, 2), bias = numbers(40, 3), y(x.size());
      Call call;
      call.x = {x.data(), {64, 40}}, call.y = {y.data(), {64, 40}};
      call.scale = {scale.data(), {40}}, call.bias = {bias.data(), {40}};
      std::vector<char> workspace(4096);
      call.workspace = {workspace.data(), workspace.size()};
      plan(call);
      y_ = y;
    });
  }
  /// The same with call `number` failing. True if there is such a call.
  bool runWith(int number, std::string& said) {
    failed = nullptr, failing = number, calls = 0;
    said = run();
    calls = -1;
    return failed;
  }

  std::string path_;
  std::vector<float> y_;
};

TEST_F(FileFault, IsAStatusThatNamesTheFile) {
  ASSERT_EQ(run(), "accepted");
  const std::vector<float> want = y_;
  const int before = openFiles();
  std::set<std::string> met;
  for (const int each : {EIO, EMFILE, ENOMEM, EINTR}) {
    error = each;
    std::string said;
    for (int call = 1; runWith(call, said); ++call) {
      SCOPED_TRACE(std::string(failed) + ", call " + std::to_string(call) + ": " + std::strerror(each) +
                   ": " + said);
      met.insert(failed);
      if (said == "accepted") {
        EXPECT_EQ(y_, want);
      } else {
        EXPECT_TRUE(has(said, path_));
        if (failed == std::string("fstat") || failed == std::string("pread")) {
          EXPECT_TRUE(has(said, ": cannot read the package " + path_));
        }
        const bool loader = failed == std::string("dlopen");
        EXPECT_TRUE(has(said, std::strerror(loader ? ENOENT : each)));
        if (!loader && (each == EMFILE || each == ENOMEM)) {
          EXPECT_TRUE(said.starts_with("RESOURCE_EXHAUSTED")) << "it may succeed later";
        }
      }
      EXPECT_EQ(openFiles(), before);
      EXPECT_EQ(run(), "accepted");
      EXPECT_EQ(y_, want);
    }
    EXPECT_EQ(said, "accepted");
  }
  for (const char* name :
       {"open", "fstat", "pread", "memfd_create", "write", "fcntl", "dlopen", "pthread_create"})
    EXPECT_TRUE(met.contains(name)) << name;
}

TEST_F(FileFault, TransfersOfOneByteAreGoneOnWith) {
  ASSERT_EQ(run(), "accepted");
  const std::vector<float> want = y_;
  oneByte = true;
  std::string said;
  EXPECT_FALSE(runWith(0, said));
  oneByte = false;
  EXPECT_EQ(said, "accepted");
  EXPECT_EQ(y_, want);
}

TEST_F(FileFault, AnInterruptedCallIsRepeated) {
  error = EINTR;
  std::string said;
  for (int call = 1; runWith(call, said); ++call)
    if (failed == std::string("pread") || failed == std::string("write"))
      EXPECT_EQ(said, "accepted") << failed;
}

}  // namespace
}  // namespace normc::test

#endif
