// normc_hammer: many threads call the runtime at once. A count, not a test: the suite has a few of these
// calls (ThreadsTest.cpp). It is meant for a build with TSan.
//
//   normc_hammer [THREADS [CALLS]]        64 threads, 1000000 calls each
//
// All threads share one plan of a context with the library's own threads. Each compares the bits of every
// result. Meanwhile they make and destroy plans, contexts with packages, and processes that call too. The
// last line counts; fails where a result is wrong.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/runtime/Support.h"

using namespace normc;
using namespace normc::test;

namespace {

constexpr int64_t kPerPlan = 1000, kPerContext = 20000, kPerFork = 100000;

struct Counts {
  std::atomic<int64_t> calls, plans, contexts, forks, wrong;
};

/// Calls the plan of another, and compares with its results.
struct Caller {
  const LayerNorm& shared;
  LayerNorm own;

  explicit Caller(const LayerNorm& shared) : shared(shared), own(shared.rows, shared.features) {}

  bool isRight(const Plan& plan) {
    std::ranges::fill(own.y, 0.f);
    Call call = own.forward();
    plan(call);
    return own.y == shared.y;
  }
};

void hammer(const LayerNorm& shared, const Plan& plan, int64_t calls, Counts& counts) {
  Caller caller(shared);
  const auto check = [&](bool right) { counts.wrong += !right; };
  for (int64_t i = 1; i <= calls; ++i) {
    check(caller.isRight(plan));
    ++counts.calls;
    if (i % kPerPlan == 0) {
      check(caller.isRight(Plan(standard(), "layer_norm:forward@f32[*x*]")));
      ++counts.plans;
    }
    if (i % kPerContext == 0) {
      const host::Package package = openInMemory(standardPackage(), host::Context());
      check(caller.isRight(Plan(package, "layer_norm:forward@f32[*x*]")));
      ++counts.contexts;
    }
    if (i % kPerFork == 0) {
      const pid_t child = fork();
      if (child == 0) _exit(!caller.isRight(plan));
      int status = 1;
      waitpid(child, &status, 0);
      check(child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
      ++counts.forks;
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 64;
  const int64_t calls = count > 2 ? std::atoll(arguments[2]) : 1000000;
  const host::Package package = openInMemory(standardPackage(), host::Context());
  LayerNorm shared(8, 16, package);
  const Plan plan(package, "layer_norm:forward@f32[*x*]");
  plan(shared.forward());
  Counts counts = {};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([&] { hammer(shared, plan, calls, counts); });
  for (std::thread& thread : all) thread.join();
  std::printf("%d threads, %lld calls, %lld plans, %lld contexts, %lld processes, %lld wrong results\n",
              threads, (long long)counts.calls, (long long)counts.plans, (long long)counts.contexts,
              (long long)counts.forks, (long long)counts.wrong);
  return counts.wrong != 0;
}
