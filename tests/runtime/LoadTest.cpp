// Code that is loaded is the package's own, whatever the host does with descriptors and with the loader.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

/// Runs `body` in a child process with its own descriptors; returns its result, 0 for success.
template <typename Body>
int inAChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

package::Writer doubling() { return packageOf(probe("features_last", false, false)); }

/// The same package but for its code, which negates.
package::Writer negating() {
  std::ifstream file(NORMC_TEST_OTHER_KERNELS, std::ios::binary);
  package::Writer writer({});
  package::Kernel kernel = probe("features_last", false, false);
  kernel.norm = writer.addNorm("probe", "hash-of-probe", "norm probe {}\n");
  kernel.blob = writer.addBlob({std::istreambuf_iterator<char>(file), {}}, "elf", hostIsa());
  writer.addKernel(std::move(kernel));
  return writer;
}

float ofThree(const Plan& plan) {
  float x = 3, y = 0;
  Call call;
  call.x = {&x, {1, 1}}, call.y = {&y, {1, 1}};
  plan(call);
  return y;
}

Plan planOf(const package::Writer& writer) {
  return Plan(openInMemory(writer, context()), "probe:forward@f32[*x*]");
}

/// The names of the objects in this process.
std::set<std::string> objects() {
  std::set<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* names) {
        static_cast<std::set<std::string>*>(names)->insert(object->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

void closeOthers() { closefrom(3); }

TEST(Load, IsNotMistakenWhereTheHostClosesDescriptors) {
  EXPECT_EQ(inAChild([] {
              closeOthers();
              const Plan first = planOf(doubling());
              closeOthers();  // the next file gets the number that the first one had
              const Plan second = planOf(negating());
              return ofThree(first) == 6 && ofThree(second) == -3 ? 0 : 1;
            }),
            0);
}

TEST(Load, IsNotMistakenWhereClosedCodeStays) {
  EXPECT_EQ(inAChild([] {
              const std::set<std::string> before = objects();
              {
                const Plan first = planOf(doubling());
                int kept = 0;  // simulates a dlclose without effect
                for (const std::string& name : objects())
                  if (!before.contains(name)) kept += dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr;
                if (kept != 1 || ofThree(first) != 6) return 1;
              }
              return ofThree(planOf(negating())) == -3 ? 0 : 2;
            }),
            0);
}

TEST(Load, KeepsNoDescriptorAndClosesNoneOfTheHost) {
  EXPECT_EQ(inAChild([] {
              closeOthers();
              auto plan = std::make_unique<Plan>(planOf(doubling()));
              const int ours = open("/dev/null", O_RDONLY);
              plan.reset();
              return ours != 3 ? 1 : fcntl(ours, F_GETFD) < 0 ? 2 : 0;
            }),
            0);
}

/// Returns the error of a plan of a package in memory, in a child process that may open only this number of
/// further descriptors.
std::string refusedAfter(int descriptors) {
  const host::Package package = openInMemory(doubling(), context());
  int pipe[2];
  if (::pipe(pipe) != 0) return "no pipe";
  EXPECT_EQ(inAChild([&] {
              const int next = dup(pipe[1]);
              close(next);
              const rlimit limit = {rlim_t(next + descriptors), rlim_t(next + descriptors)};
              setrlimit(RLIMIT_NOFILE, &limit);
              const std::string text = refusal([&] { Plan(package, "probe:forward@f32[*x*]"); });
              return write(pipe[1], text.data(), text.size()) < 0;
            }),
            0);
  char text[1000];
  const ssize_t size = read(pipe[0], text, sizeof text);
  close(pipe[0]), close(pipe[1]);
  return {text, size_t(std::max<ssize_t>(size, 0))};
}

TEST(Load, SaysWhereDescriptorsAreOut) {
  EXPECT_EQ(refusedAfter(0),
            "RESOURCE_EXHAUSTED: cannot make a memory file for blob 0 of the package in memory: Too many "
            "open files");
  const std::string text = refusedAfter(1);
  EXPECT_TRUE(
      text.starts_with("RESOURCE_EXHAUSTED: cannot load blob 0 of the package in memory: /proc/self/fd/"))
      << text;
  EXPECT_TRUE(text.ends_with("Too many open files")) << text;
  EXPECT_EQ(refusedAfter(2), "accepted");
}

#if !defined(NORMC_SANITIZED)  // a sanitizer maps terabytes
/// Returns what a plan says in a process that `limit` has limited.
template <typename Limit>
std::string refusedBehind(Limit limit) {
  int pipe[2];
  EXPECT_EQ(::pipe(pipe), 0);
  const host::Package package = openInMemory(standardPackage(), host::Context());
  EXPECT_EQ(inAChild([&] {
              limit();
              const std::string text = refusal([&] { Plan(package, "layer_norm:forward@f32[*x*]"); });
              return write(pipe[1], text.data(), text.size()) < 0;
            }),
            0);
  char text[1000];
  close(pipe[1]);
  const ssize_t size = read(pipe[0], text, sizeof text);
  close(pipe[0]);
  return {text, size_t(std::max<ssize_t>(size, 0))};
}

/// Lets the process map so many more bytes.
void limitMemory(int64_t bytes) {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = rlim_t(pages * sysconf(_SC_PAGESIZE) + bytes);
  const rlimit limit = {most, most};
  setrlimit(RLIMIT_AS, &limit);
}

/// Makes the system refuse to map code, as hardened ones do.
void forbidCode() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  EXPECT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  EXPECT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

TEST(Load, SaysWhereCodeMayNotBeMapped) {
  const std::string text = refusedBehind(forbidCode);
  EXPECT_TRUE(text.starts_with("FAILED_PRECONDITION: cannot load blob 0 of the package in memory: ")) << text;
  EXPECT_TRUE(text.ends_with("failed to map segment from shared object")) << text;
}

TEST(Load, SaysWhereMemoryIsOut) {
  std::set<std::string> statuses;
  for (int64_t bytes = 0; bytes < 512 << 10; bytes += 4 << 10) {
    const std::string text = refusedBehind([=] { limitMemory(bytes); }),
                      status = text.substr(0, text.find(':'));
    EXPECT_TRUE(status == "accepted" || status == "RESOURCE_EXHAUSTED") << bytes << ": " << text;
    statuses.insert(status);
  }
  EXPECT_EQ(statuses.size(), 2u) << "some limits are too low, and some are not";
}
#endif

#if !defined(NORMC_SANITIZED)  // whose own libraries want to be preloaded first
TEST(Load, RefusesCodeThatIsNotThePackages) {
  EXPECT_EQ(inAChild([] {
              setenv("LD_PRELOAD", NORMC_TEST_CONFUSED_LOADER, 1);
              execl("/proc/self/exe", "tests", "--gtest_filter=Load.DISABLED_UnderAConfusedLoader",
                    "--gtest_also_run_disabled_tests", "--gtest_output=", nullptr);
              return 100;
            }),
            0);
}

TEST(Load, DISABLED_UnderAConfusedLoader) {  // run by the test above
  const Plan first = planOf(doubling());
  EXPECT_EQ(refusal([] { planOf(negating()); }),
            "FAILED_PRECONDITION: cannot load blob 0 of the package in memory: the dynamic loader answered "
            "with other code "
            "3 times; see what replaces dlopen, or closes files of others, in this process");
  EXPECT_EQ(ofThree(first), 6) << "still the code that it was made with";
}
#endif

}  // namespace
}  // namespace normc::test
