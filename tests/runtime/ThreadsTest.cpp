// Threads: the host's, our own pool's, and callers that share a plan.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

/// A host's parallel_for: `threads` threads that draw indices, or fewer.
struct HostPool {
  int threads = 4;
  std::atomic<int> calls = 0;
  std::atomic<int64_t> mostTasks = 0;
  int result = 0;

  static int run(void* self, int64_t count, normc_task task, void* data) {
    HostPool& pool = *static_cast<HostPool*>(self);
    ++pool.calls;
    pool.mostTasks = std::max<int64_t>(pool.mostTasks, count);
    if (pool.threads == 1) {
      for (int64_t i = count; i-- > 0;) task(data, i);  // serial and backwards is legal
      return pool.result;
    }
    std::atomic<int64_t> next = 0;
    const auto work = [&] {
      for (int64_t i; (i = next++) < count;) task(data, i);
    };
    std::vector<std::thread> workers;
    for (int i = 1; i < pool.threads; ++i) workers.emplace_back(work);
    work();
    for (std::thread& worker : workers) worker.join();
    return pool.result;
  }

  normc_context_options options() {
    normc_context_options options = {};
    options.parallel_for = run;
    options.parallel_for_ctx = this;
    return options;
  }
};

std::vector<uint32_t> bitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

/// The bits of the results of a training step of both norms, as one list.
std::vector<uint32_t> train(const host::Package& package) {
  std::vector<uint32_t> all;
  const auto add = [&](const std::vector<float>& values) {
    const std::vector<uint32_t> bits = bitsOf(values);
    all.insert(all.end(), bits.begin(), bits.end());
  };
  LayerNorm layer(129, 33, package);
  PowerNorm power(129, 33, package);
  layer.forwardPlan(layer.forward());
  layer.backwardPlan(layer.backward());
  power.forwardPlan(power.forward());
  power.backwardPlan(power.backward());
  for (LayerNorm* norm : {&layer, static_cast<LayerNorm*>(&power)})
    for (const auto* values : {&norm->y, &norm->dx, &norm->dscale, &norm->dbias}) add(*values);
  add(power.field("psi2"));
  add(power.field("nu"));
  return all;
}

TEST(Threads, DoNotChangeResults) {
  const std::vector<uint32_t> expected = train(standard());
  for (int threads : {1, 2, 3, 7, 16}) {
    HostPool pool;
    pool.threads = threads;
    const host::Package package = openInMemory(standardPackage(), host::Context(pool.options()));
    for (int repeat = 0; repeat < 5; ++repeat) ASSERT_EQ(train(package), expected) << threads << " threads";
    EXPECT_GT(pool.calls, 0);
  }
}

TEST(Threads, OfTheHostGetNoMoreTasksThanAskedFor) {
  for (const auto& [contextLimit, planLimit, most] :
       {std::tuple{0, 0, 8}, {3, 0, 3}, {3, 2, 2}, {2, 5, 2}, {0, 6, 6}}) {
    HostPool pool;
    normc_context_options options = pool.options();
    options.max_threads = contextLimit;
    const host::Package package = openInMemory(standardPackage(), host::Context(options));
    normc_request request = {};
    request.max_threads = planLimit;
    LayerNorm norm(129, 8, package);
    norm.forwardPlan = Plan(package, "layer_norm:forward@f32[*x*]", request);
    norm.forwardPlan(norm.forward());
    EXPECT_EQ(pool.mostTasks, most) << contextLimit << " " << planLimit;
    EXPECT_NE(norm.forwardPlan.describe().find("threads: the host's parallel_for, "), std::string::npos);
  }
}

TEST(Threads, GetChunksOfAboutOneLength) {
  // At least 4 rows each, or 3 where that is nearer, an even number, at most 8 chunks.
  for (const auto& [rows, chunks] : {std::pair{5, 0}, {9, 2}, {11, 3}, {13, 3}, {129, 8}}) {
    HostPool pool;
    LayerNorm norm(rows, 8, openInMemory(standardPackage(), host::Context(pool.options())));
    norm.forwardPlan(norm.forward());
    EXPECT_EQ(pool.mostTasks, chunks) << rows << " rows; one chunk needs no threads";
  }
}

TEST(Threads, ShareAGroupOfFewRows) {
  package::Kernel kernel = layerNorm("forward");
  kernel.phases[0].minUnits = 2, kernel.phases[0].multiple = 2, kernel.phases[0].group = 16,
  kernel.phases[0].maxChunks = 64;
  for (const auto& [rows, chunks] : {std::pair{8, 4}, {511, 64}, {512, 32}}) {
    HostPool pool;
    LayerNorm norm(rows, 8,
                   openInMemory(packageOf({kernel, layerNorm("backward")}), host::Context(pool.options())));
    norm.forwardPlan(norm.forward());
    EXPECT_EQ(pool.mostTasks, chunks) << rows << " rows; from 32 groups on they stay whole";
  }
}

TEST(Threads, ComeBeforeRowsEnoughForAChunk) {
  package::Kernel kernel = layerNorm("forward");
  kernel.phases[0].minUnits = 2, kernel.phases[0].multiple = 2, kernel.phases[0].enoughUnits = 8,
  kernel.phases[0].maxChunks = 64;
  for (const auto& [rows, chunks] : {std::pair{8, 4}, {32, 16}, {64, 16}, {128, 16}, {256, 32}, {1024, 64}}) {
    HostPool pool;
    LayerNorm norm(rows, 8,
                   openInMemory(packageOf({kernel, layerNorm("backward")}), host::Context(pool.options())));
    norm.forwardPlan(norm.forward());
    EXPECT_EQ(pool.mostTasks, chunks) << rows << " rows";
  }
}

TEST(Threads, GetFewerRowsWhereARowWeighsMore) {
  package::Kernel kernel = layerNorm("forward");
  kernel.phases[0].minUnits = 64, kernel.phases[0].weight = {package::kFeatures},
  kernel.phases[0].maxChunks = 64;
  for (const auto& [rows, features, chunks] :
       {std::array{32, 8, 4}, {32, 16, 8}, {32, 64, 16}, {1024, 8, 64}}) {
    HostPool pool;
    LayerNorm norm(rows, features,
                   openInMemory(packageOf({kernel, layerNorm("backward")}), host::Context(pool.options())));
    norm.forwardPlan(norm.forward());
    EXPECT_EQ(pool.mostTasks, chunks) << rows << " x " << features << "; an even number of rows each";
  }
}

TEST(Threads, StayAsleepForOneChunk) {
  HostPool pool;
  const host::Package package = openInMemory(standardPackage(), host::Context(pool.options()));
  LayerNorm norm(4, 4, package);
  norm.forwardPlan(norm.forward());
  norm.backwardPlan(norm.backward());
  EXPECT_EQ(pool.calls, 0);
}

TEST(Threads, OfTheHostMayFail) {
  HostPool pool;
  pool.result = 3;
  const host::Package package = openInMemory(standardPackage(), host::Context(pool.options()));
  LayerNorm norm(129, 8, package);
  EXPECT_EQ(refusal([&] { norm.forwardPlan(norm.forward()); }),
            "ABORTED: parallel_for returned 3 in phase 0; the outputs are undefined");
  normc_context_options options = {};
  options.parallel_for = [](void*, int64_t, normc_task, void*) { return 0; };
  const host::Package lazy = openInMemory(standardPackage(), host::Context(options));
  LayerNorm other(129, 8, lazy);
  EXPECT_EQ(refusal([&] { other.forwardPlan(other.forward()); }),
            "ABORTED: parallel_for returned in phase 0 before its tasks had run; the outputs are undefined");
}

TEST(Threads, ShareOnePlan) {
  LayerNorm reference(33, 10);
  reference.forwardPlan(reference.forward());
  reference.backwardPlan(reference.backward());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 64; ++i)
    callers.emplace_back([&] {
      LayerNorm own(33, 10);
      for (int repeat = 0; repeat < 20; ++repeat) {
        reference.forwardPlan(own.forward());
        reference.backwardPlan(own.backward());
        for (const auto values : {&LayerNorm::y, &LayerNorm::dx, &LayerNorm::dscale, &LayerNorm::dbias})
          if (bitsOf(own.*values) != bitsOf(reference.*values)) ++wrong;
        std::string text = refusal([&] { reference.forwardPlan(Call{}); });
        if (text != "INVALID_ARGUMENT: x is null; layer_norm:forward@f32[*x*] needs it") ++wrong;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, MakePlansOfOnePackageTogether) {
  const host::Package package = openInMemory(standardPackage(), host::Context(oneThread()));
  std::atomic<int> made = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 10; ++repeat) {
        Plan(package, "layer_norm:forward@f32[*x*]");
        ++made;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(made, 160);
}

TEST(DefaultPool, GivesTheSameResults) {
  const std::vector<uint32_t> expected = train(standard());
  for (int threads : {0, 2}) {
    normc_context_options options = {};
    options.max_threads = threads;
    const host::Package package = openInMemory(standardPackage(), host::Context(options));
    for (int repeat = 0; repeat < 20; ++repeat) ASSERT_EQ(train(package), expected);
  }
}

TEST(DefaultPool, ServesManyCallersAtOnce) {
  const host::Package package = openInMemory(standardPackage(), host::Context());
  const std::vector<uint32_t> expected = train(standard());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 64; ++i)
    callers.emplace_back([&] {
      if (train(package) != expected) ++wrong;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

int availableProcessors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

TEST(DefaultPool, IsNamedInTheDescription) {
  const host::Package package = openInMemory(standardPackage(), host::Context());
  const std::string text = Plan(package, "layer_norm:forward@f32[*x*]").describe();
  const bool one = availableProcessors() == 1;
  EXPECT_NE(text.find(one ? std::string("threads: 1: the process may use one processor")
                          : "threads: at most " + std::to_string(availableProcessors()) + " of our own"),
            std::string::npos)
      << text;
}
#if !defined(NORMC_SANITIZED)  // a sanitizer maps terabytes
/// Makes a plan where no stack of a thread fits into memory any more, prints what was logged and the
/// description, and ends the process.
void describeWithoutThreads() {
  static const host::Package* asked;
  normc_context_options options = {};
  options.log = [](void*, const char* line) {  // calls the library, as it may
    std::fprintf(stderr, "%s\n", line);
    Plan(*asked, "layer_norm:forward@f32[*x*]");
  };
  const host::Package package = openInMemory(standardPackage(), host::Context(options));
  asked = &package;
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * sysconf(_SC_PAGESIZE) + (4 << 20);
  const rlimit limit = {most, most};
  setrlimit(RLIMIT_AS, &limit);
  std::fprintf(stderr, "%s", Plan(package, "layer_norm:forward@f32[*x*]").describe().c_str());
  std::exit(0);
}

TEST(DefaultPoolDeathTest, MayGetNoThreads) {
  if (availableProcessors() == 1) GTEST_SKIP() << "with one processor no thread is begun";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(describeWithoutThreads(), ::testing::ExitedWithCode(0),
              "normc: the system gives 0 threads of [0-9]+, others are done without\n"
              "layer_norm:forward@f32\\[\\*x\\*\\]\n(.*\n)*threads: 1: the system gives no more\n");
}
#endif

}  // namespace
}  // namespace normc::test
