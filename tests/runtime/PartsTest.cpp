// Calls by parts: the bits of a whole call for any number of threads, barriers, and errors that all threads
// find alike.
#include <barrier>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "tests/runtime/CudaSupport.h"
#include "tests/runtime/InStep.h"

namespace normc::test {
namespace {

constexpr Turns kTurns[] = {Turns::Free, Turns::Ascending, Turns::Descending};

/// Executes the call by parts on `count` threads. All call the barrier as often as the plan says.
InStep byParts(const Plan& plan, const Call& call, const normc_sizes& sizes, int count,
               Turns turns = Turns::Free) {
  const host::detail::Arguments args(call);
  const InStep result = inStep(count, turns, [&](int ith, normc_barrier barrier, void* ctx) {
    return normc_execute_part(plan.get(), args.get(), ith, count, barrier, ctx);
  });
  EXPECT_EQ(result.status(), NORMC_OK) << result.errors[0];
  for (const int waits : result.waits) EXPECT_EQ(waits, count == 1 ? 0 : plan.barriers(sizes)) << count;
  return result;
}

/// The results of two training steps of both norms, each call by `run(plan, call, sizes)`.
template <typename Run>
std::vector<float> train(int64_t rows, Run&& run) {
  std::vector<float> all;
  const auto add = [&](const std::vector<float>& values) {
    all.insert(all.end(), values.begin(), values.end());
  };
  LayerNorm layer(rows, 33);
  PowerNorm power(rows, 33);
  for (LayerNorm* norm : {&layer, static_cast<LayerNorm*>(&power), static_cast<LayerNorm*>(&power)}) {
    const bool lagged = norm == &power;
    run(norm->forwardPlan, lagged ? power.forward() : layer.forward(), norm->sizes());
    run(norm->backwardPlan, lagged ? power.backward() : layer.backward(), norm->sizes());
    for (const auto* values : {&norm->y, &norm->dx, &norm->dscale, &norm->dbias}) add(*values);
  }
  add(power.field("psi2"));
  add(power.field("nu"));
  all.push_back(static_cast<float>(power.step()));
  return all;
}

TEST(Parts, HaveTheBitsOfTheWholeCall) {
  for (const int64_t rows : {0, 1, 5, 129}) {
    const auto expected = train(rows, [](const Plan& plan, const Call& call, const auto&) { plan(call); });
    for (const Turns turns : kTurns)
      for (const int count : {1, 2, 3, 7, 16, 40}) {
        const auto parts = train(rows, [&](const Plan& plan, const Call& call, const normc_sizes& sizes) {
          byParts(plan, call, sizes, count, turns);
        });
        ASSERT_EQ(0, std::memcmp(parts.data(), expected.data(), expected.size() * sizeof(float)))
            << rows << " rows, " << count << " threads";
      }
  }
}

TEST(Parts, CopyFieldsOnce) {
  PowerNorm norm(129, 10);
  const std::vector<float> fresh(10, 3);
  norm.state.write("nu", fresh.data(), fresh.size());
  const host::Buffer before = norm.state.buffer();
  for (const Turns turns : kTurns) {
    std::vector<char> after(before.bytes, 77);
    Call call = norm.forward();
    call.state = nullptr, call.stateIn = before, call.stateOut = after;
    byParts(norm.forwardPlan, call, norm.sizes(), 3, turns);
    for (const normc_field& field : norm.forwardPlan.stateFields(10))
      if (field.name == std::string("nu"))
        EXPECT_EQ(0, std::memcmp(after.data() + field.offset, fresh.data(), field.bytes));
  }
}

/// Three phases over the same rows, whose eight chunks number themselves in the features 0, 1 and 2 of y, and
/// the numbers of one phase.
struct NumberedChunks : LayerNorm {
  NumberedChunks()
      : LayerNorm(32, 3,
                  openInMemory(packageOf({kernel(), layerNorm("backward")}), host::Context(oneThread()))) {}

  static package::Kernel kernel() {
    package::Kernel kernel = layerNorm("forward");
    kernel.phases.resize(3, kernel.phases[0]);
    kernel.phases[0].symbol = "number_first";
    kernel.phases[1].symbol = "number_second";
    kernel.phases[2].symbol = "number_third";
    return kernel;
  }
  std::vector<float> ofPhase(int64_t phase) const {
    std::vector<float> numbers;
    for (int64_t row = 0; row < rows; row += rows / 8) numbers.push_back(y[row * features + phase]);
    return numbers;
  }
};

// The next phase begins with the chunks that the caches still hold: those that were read last.
TEST(Phases, GoOverTheSameRowsInTurnForwardsAndBackwards) {
  const std::vector<float> ascending = {0, 1, 2, 3, 4, 5, 6, 7}, descending = {7, 6, 5, 4, 3, 2, 1, 0};
  NumberedChunks whole;
  whole.forwardPlan(whole.forward());
  EXPECT_EQ(whole.ofPhase(0), ascending);
  EXPECT_EQ(whole.ofPhase(1), descending);
  EXPECT_EQ(whole.ofPhase(2), ascending);
}

TEST(Parts, KeepTheirChunksAndGoOverThemInTurnForwardsAndBackwards) {
  NumberedChunks parts;
  byParts(parts.forwardPlan, parts.forward(), parts.sizes(), 2, Turns::Ascending);
  EXPECT_EQ(parts.ofPhase(0), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(parts.ofPhase(1), (std::vector<float>{3, 2, 1, 0, 7, 6, 5, 4}));
  EXPECT_EQ(parts.ofPhase(2), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Parts, OfOnePhaseNeedNoBarrier) {
  LayerNorm norm(129, 10), parts(129, 10);
  norm.forwardPlan(norm.forward());
  EXPECT_EQ(parts.forwardPlan.barriers(parts.sizes()), 0);
  for (int ith = 4; ith-- > 0;) parts.forwardPlan.part(parts.forward(), ith, 4);
  EXPECT_EQ(parts.y, norm.y);
  EXPECT_EQ(parts.saved, norm.saved);
}

TEST(Parts, WaitOnlyForWhatOtherThreadsComputed) {
  LayerNorm norm;
  EXPECT_EQ(norm.backwardPlan.barriers(Plan::sizes(1, 129, 33)), 1);
  EXPECT_EQ(norm.backwardPlan.barriers(Plan::sizes(1, 3, 3)), 0) << "one thread runs both phases";
  EXPECT_EQ(norm.backwardPlan.barriers(Plan::sizes(1, 129, 3)), 1);
}

TEST(Parts, RunOnTheThreadsOfAnyBarrier) {
  LayerNorm norm(129, 10), parts(129, 10);
  norm.forwardPlan(norm.forward());
  norm.backwardPlan(norm.backward());
  const Call forward = parts.forward(), backward = parts.backward();
  std::barrier barrier(4);
  std::vector<std::thread> threads;
  for (int ith = 0; ith < 4; ++ith)
    threads.emplace_back([&, ith] {
      auto wait = [&] { barrier.arrive_and_wait(); };
      parts.forwardPlan.part(forward, ith, 4, wait);
      wait();
      parts.backwardPlan.part(backward, ith, 4, wait);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(parts.dx, norm.dx);
  EXPECT_EQ(parts.dscale, norm.dscale);
}

// The first phase counts the step in place; the second runs in warmup alone, on many threads.
TEST(Parts, AgreeOnWarmupBeforeTheStepIsCounted) {
  package::Kernel kernel = warmup("forward");
  kernel.operands[3] = kernel.operands[1];
  kernel.operands[3].role = package::Role::StateOut, kernel.operands[3].access = package::Access::Write;
  kernel.phases[0].symbol = "count_step", kernel.phases[0].when = package::When::Always;
  kernel.phases[1].when = package::When::Warmup;
  const host::Package package = openInMemory(packageOf(kernel), context());
  const Plan plan(package, "warmup:forward@f32[*x*]");
  EXPECT_EQ(plan.barriers(Plan::sizes(1, 64, 4)), 2);
  const std::vector<float> x = numbers(64 * 4);
  for (const Turns turns : kTurns) {
    State state(plan, 4);
    for (int64_t step = 0; step < 5; ++step) {
      std::vector<float> y(x.size(), -7);
      Call call;
      call.x = {x.data(), {64, 4}}, call.y = {y.data(), {64, 4}}, call.state = &state;
      byParts(plan, call, Plan::sizes(1, 64, 4), 3, turns);
      int64_t counted;
      state.read("step", &counted, 1);
      EXPECT_EQ(counted, step + 1);
      EXPECT_EQ(y, step < 3 ? x : std::vector<float>(x.size(), -7)) << step;
    }
  }
  normc_request steady = {};
  steady.steady = 1;
  const Plan over(package, "warmup:forward@f32[*x*]", steady);
  State state(over, 4);
  std::vector<float> y(x.size());
  Call call;
  call.x = {x.data(), {64, 4}}, call.y = {y.data(), {64, 4}}, call.state = &state;
  const host::detail::Arguments args(call);
  const InStep refused = inStep(3, Turns::Free, [&](int ith, normc_barrier barrier, void* ctx) {
    return normc_execute_part(over.get(), args.get(), ith, 3, barrier, ctx);
  });
  EXPECT_EQ(refused.statuses, std::vector(3, NORMC_FAILED_PRECONDITION));
  EXPECT_EQ(refused.waits, std::vector(3, 0));
}

#if defined(__x86_64__)
TEST(Parts, RestoreTheFloatingPointModeBeforeABarrier) {
  LayerNorm norm(129, 10);
  const Call forward = norm.forward(), backward = norm.backward();
  norm.forwardPlan(forward);
  const unsigned before = _mm_getcsr();
  std::barrier barrier(2);
  std::vector<std::thread> threads;
  for (int ith = 0; ith < 2; ++ith)
    threads.emplace_back([&, ith] {
      auto wait = [&] {
        EXPECT_EQ(_mm_getcsr() & ~0x3fu, before & ~0x3fu);  // but for the flags
        barrier.arrive_and_wait();
      };
      norm.backwardPlan.part(backward, ith, 2, wait);
      EXPECT_EQ(_mm_getcsr() & ~0x3fu, before & ~0x3fu);
    });
  for (std::thread& thread : threads) thread.join();
}
#endif

class PartsRefusal : public testing::Test {
 protected:
  LayerNorm norm{129, 10};
  std::vector<float> poison = std::vector<float>(10, -7);

  /// Returns the error of a backward of 3 threads, which is the same on each, and writes and waits for
  /// nothing.
  template <typename Change>
  std::string refused(Change change, int nth = 3, bool barrier = true) {
    Call call = norm.backward();
    change(call);
    norm.dscale = poison;
    const host::detail::Arguments args(call);
    const InStep result = inStep(3, Turns::Free, [&](int ith, normc_barrier wait, void* ctx) {
      return normc_execute_part(norm.backwardPlan.get(), args.get(), ith, nth, barrier ? wait : nullptr, ctx);
    });
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(result.errors[i], result.errors[0]);
      EXPECT_EQ(result.statuses[i], result.statuses[0]);
      EXPECT_EQ(result.waits[i], 0);
    }
    EXPECT_EQ(norm.dscale, poison);
    return normc_status_name(result.statuses[0]) + (": " + result.errors[0]);
  }
};

TEST_F(PartsRefusal, IsThatOfTheWholeCall) {
  EXPECT_EQ(refused([](Call& c) { c.dy = {}; }),
            "INVALID_ARGUMENT: dy is null; layer_norm:backward@f32[*x*] needs it");
  EXPECT_TRUE(has(refused([](Call& c) { c.workspace = {}; }), "INVALID_ARGUMENT: workspace has 0 bytes"));
  EXPECT_TRUE(has(refused([&](Call& c) { c.dx = norm.matrix(norm.x); }),
                  "INVALID_ARGUMENT: dx is written and overlaps x"));
}

TEST_F(PartsRefusal, OfPhasesWithoutABarrier) {
  EXPECT_EQ(refused([](Call&) {}, 3, false),
            "INVALID_ARGUMENT: barrier is null, but nth is 3 and the threads of layer_norm:backward@f32[*x*] "
            "wait for each other between its phases");
  LayerNorm few(3, 3);
  EXPECT_TRUE(has(refusal([&] { few.backwardPlan.part(few.backward(), 0, 2); }), "barrier is null"))
      << "whether it is needed does not depend on the sizes";
  EXPECT_EQ(refusal([&] { few.backwardPlan.part(few.backward(), 0, 1); }), "accepted");
}

TEST_F(PartsRefusal, OfNumbersOfThreads) {
  EXPECT_EQ(refused([](Call&) {}, 0), "INVALID_ARGUMENT: nth is 0; it must be at least 1");
  EXPECT_EQ(refused([](Call&) {}, -2), "INVALID_ARGUMENT: nth is -2; it must be at least 1");
}

TEST_F(PartsRefusal, OfAPartThatDoesNotExistStopsNoOtherThread) {
  const Call call = norm.backward();  // the arguments point into it
  const host::detail::Arguments args(call);
  const InStep result = inStep(3, Turns::Free, [&](int ith, normc_barrier barrier, void* ctx) {
    return normc_execute_part(norm.backwardPlan.get(), args.get(), ith == 2 ? -1 : ith, 3, barrier, ctx);
  });
  EXPECT_EQ(result.statuses, (std::vector{NORMC_OK, NORMC_OK, NORMC_INVALID_ARGUMENT}));
  EXPECT_EQ(result.waits, std::vector(3, 1));
  EXPECT_EQ(result.errors[2], "ith is -1; it must be from 0 to 2, nth - 1; the outputs are undefined");
  EXPECT_EQ(refusal([&] { norm.forwardPlan.part(norm.forward(), 1, 1); }),
            "INVALID_ARGUMENT: ith is 1; it must be from 0 to 0, nth - 1; the outputs are undefined");
}

TEST_F(PartsRefusal, OfNull) {
  const Call call = norm.forward();  // the arguments point into it
  const host::detail::Arguments args(call);
  EXPECT_EQ(refusal(normc_execute_part(nullptr, args.get(), 0, 1, nullptr, nullptr)),
            "INVALID_ARGUMENT: plan is null");
  EXPECT_EQ(refusal(normc_execute_part(norm.forwardPlan.get(), nullptr, 0, 1, nullptr, nullptr)),
            "INVALID_ARGUMENT: args is null");
  EXPECT_EQ(refusal(normc_plan_barriers(norm.forwardPlan.get(), nullptr, nullptr)),
            "INVALID_ARGUMENT: sizes is null");
}

TEST_F(CudaTest, HasNoParts) {
  const Plan plan(open(forCuda(layerNorm("forward"))), "layer_norm:forward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(33, 8);
  const std::string text =
      "FAILED_PRECONDITION: layer_norm:forward@f32[*x*] runs on CUDA here, where a call has no parts; use "
      "normc_execute";
  EXPECT_EQ(refusal([&] { plan.part(norm.forward(), 0, 1); }), text);
  EXPECT_EQ(refusal([&] { plan.barriers(Plan::sizes(1, 33, 8)); }), text);
}

}  // namespace
}  // namespace normc::test
