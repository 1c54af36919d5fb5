// State in the memory of a device: owned by a state object or by the caller, steps and warmup included.
#include <optional>

#include "examples/cpp/checkpoint.hpp"
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using namespace cuda;

const char* const kForward = "power_norm:forward@f32[*x*]";

class CudaState : public CudaTest {
 protected:
  static host::Package power() {
    return open(cudaPackage({forCuda(powerNorm("forward")), forCuda(powerNorm("backward"))}));
  }
  template <typename T>
  static std::vector<T> values(const State& state, const char* field, size_t count) {
    std::vector<T> result(count);
    state.read(field, result.data(), count);
    return result;
  }
  static bool onDevice(const void* memory) {
    fake_cuda_allocation allocation;
    return fake_cuda_allocation_of(reinterpret_cast<uint64_t>(memory), &allocation) != 0;
  }
};

TEST_F(CudaState, LiesOnTheDevice) {
  const host::Package package = power();
  const Plan plan(package, kForward, host::onCuda());
  State state(plan, 5);
  EXPECT_TRUE(onDevice(state.buffer().data));
  EXPECT_EQ(state.buffer().bytes, plan.stateBytes(5));
  EXPECT_EQ(values<int64_t>(state, "step", 1), std::vector<int64_t>{0});
  EXPECT_EQ(values<float>(state, "psi2", 5), std::vector<float>(5, 1));
  const std::vector<float> psi2 = {1, 2, 3, 4, 5};
  state.write("psi2", psi2.data(), psi2.size());
  EXPECT_EQ(values<float>(state, "psi2", 5), psi2);
  EXPECT_EQ(values<float>(state, "nu", 5), std::vector<float>(5, 0)) << "its neighbour is as it was";
  state.reset();
  EXPECT_EQ(values<float>(state, "psi2", 5), std::vector<float>(5, 1));
  EXPECT_EQ(refusal([&] { values<float>(state, "psi3", 5); }),
            "NOT_FOUND: the state of power_norm has no field 'psi3'; it has: step:i64[], psi2:f32[features], "
            "nu:f32[features]");
}

TEST_F(CudaState, IsCopiedBetweenDevices) {
  const host::Package package = open(cudaPackage(
      {forCuda(powerNorm("forward")), hostIsa() == "none" ? layerNorm("forward") : powerNorm("forward")}));
  restart({{9, 0, 0, 0}, {9, 0, 0, 0}});
  const Plan first(package, kForward, host::onCuda(0)), second(package, kForward, host::onCuda(1));
  State a(first, 3), b(second, 3);
  const std::vector<float> psi2 = {7, 8, 9};
  a.write("psi2", psi2.data(), 3);
  b.copyFrom(a);
  EXPECT_EQ(values<float>(b, "psi2", 3), psi2);
  b.copyFrom(b);
  EXPECT_EQ(values<float>(b, "psi2", 3), psi2);
  if (hostIsa() == "none") return;
  const Plan processor(package, kForward);
  State host(processor, 3);
  host.copyFrom(b);
  EXPECT_EQ(values<float>(host, "psi2", 3), psi2);
  const std::vector<float> other = {1, 0, 1};
  host.write("psi2", other.data(), 3);
  a.copyFrom(host);
  EXPECT_EQ(values<float>(a, "psi2", 3), other);
  EXPECT_EQ(refusal([&] { a.copyFrom(State(second, 4)); }),
            "INVALID_ARGUMENT: the states differ: power_norm (step:i64[], psi2:f32[features], "
            "nu:f32[features]) with "
            "3 features, and power_norm (step:i64[], psi2:f32[features], nu:f32[features]) with 4 features");
}

TEST_F(CudaState, OfAnotherDeviceIsRefused) {
  const host::Package package = open(cudaPackage(
      {forCuda(powerNorm("forward")), hostIsa() == "none" ? layerNorm("forward") : powerNorm("forward")}));
  restart({{9, 0, 0, 0}, {9, 0, 0, 0}});
  const Plan first(package, kForward, host::onCuda(0)), second(package, kForward, host::onCuda(1));
  State state(second, 8);
  const CudaLayerNorm norm(4, 8);
  Call call = norm.forward();
  call.saved = {}, call.workspace = norm.workspace.buffer();
  call.state = &state;
  EXPECT_EQ(refusal([&] { first(call); }),
            "INVALID_ARGUMENT: the state lies on cuda:1; this plan runs on cuda:0 (normc_state_copy brings "
            "it there)");
  if (hostIsa() == "none") return;
  State host(Plan(package, kForward), 8);
  call.state = &host;
  EXPECT_EQ(
      refusal([&] { first(call); }),
      "INVALID_ARGUMENT: the state lies on the CPU; this plan runs on cuda:0 (normc_state_copy brings it "
      "there)");
}

TEST_F(CudaState, OfAnotherContextIsRefused) {
  const host::Package package = power();
  const Plan plan(package, kForward, host::onCuda());
  CUcontext own = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
  {
    const Plan other(package, kForward, host::onCuda());
    State state(other, 8), brought(plan, 8);
    const CudaLayerNorm norm(4, 8);
    Call call = norm.forward();
    call.saved = {}, call.workspace = norm.workspace.buffer();
    call.state = &state;
    EXPECT_EQ(refusal([&] { plan(call); }),
              "INVALID_ARGUMENT: the state belongs to another context of cuda:0 than the plan "
              "(normc_state_copy brings it to "
              "a state that is made from this plan)");
    EXPECT_EQ(fake_cuda_launch_count(), 0u);
    brought.copyFrom(state);
    call.state = &brought;
    EXPECT_EQ(refusal([&] { plan(call); }), "accepted");
  }
  cuCtxDestroy_v2(own);
}

TEST_F(CudaState, OfAContextThatIsGoneFreesNothingOfAnothers) {
  const host::Package package = power();
  CUcontext own = nullptr;
  cuInit(0);
  ASSERT_EQ(cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
  std::optional<Plan> plan(std::in_place, package, kForward, host::onCuda());
  std::optional<State> state(std::in_place, *plan, 5);
  EXPECT_EQ(fake_cuda_live_allocations(), 1u);
  ASSERT_EQ(cuCtxDestroy_v2(own), CUDA_SUCCESS);
  EXPECT_EQ(fake_cuda_live_allocations(), 0u) << "what lay in it went with it";
  const Current another;
  fake_cuda_clear_record();
  state.reset(), plan.reset();
  EXPECT_EQ(driverCalls(), "") << "nothing is freed or unloaded in the context that happens to be current";
}

TEST_F(CudaState, TakesACheckpointOfTheReleasedCode) {
  const host::Package package = power();
  const Plan plan(package, kForward, host::onCuda());
  State state(plan, 2);
  example::load({{3, 4}, {10, 20}, 77, 0.75}, state);
  EXPECT_EQ(values<float>(state, "psi2", 2), (std::vector<float>{3, 4}));
  EXPECT_EQ(values<float>(state, "nu", 2), (std::vector<float>{2.5, 5}));
  EXPECT_EQ(values<int64_t>(state, "step", 1), std::vector<int64_t>{77});
}

TEST_F(CudaState, MayBeTheCallersMemory) {
  const host::Package package = power();
  const Plan plan(package, kForward, host::onCuda());
  const DeviceBuffer memory(plan.stateBytes(8));
  const normc_sizes sizes = Plan::sizes(1, 4, 8);
  host::check(normc_plan_state_init(plan.get(), &sizes, memory.data(), memory.buffer().bytes));
  const State fresh(plan, 8);
  EXPECT_EQ(std::memcmp(memory.data(), fresh.buffer().data, memory.buffer().bytes), 0);
  EXPECT_EQ(refusal(normc_plan_state_init(plan.get(), &sizes, memory.data() + 4, memory.buffer().bytes)),
            "INVALID_ARGUMENT: memory is not aligned to 8 bytes");
  std::vector<char> host(memory.buffer().bytes);
  EXPECT_EQ(
      refusal(normc_plan_state_init(plan.get(), &sizes, host.data(), host.size())),
      "FAILED_PRECONDITION: copying 192 bytes to cuda:0 failed: CUDA_ERROR_INVALID_VALUE, invalid argument");
}

TEST_F(CudaState, FieldsThatAnEntryDoesNotWriteAreCopiedOnTheStream) {
  const host::Package package = power();
  const Plan plan(package, kForward, host::onCuda());
  const DeviceBuffer in(plan.stateBytes(8)), out(plan.stateBytes(8));
  const normc_sizes sizes = Plan::sizes(1, 4, 8);
  host::check(normc_plan_state_init(plan.get(), &sizes, in.data(), in.buffer().bytes));
  const CudaLayerNorm norm(4, 8);
  Call call = norm.forward();
  call.saved = {}, call.workspace = norm.workspace.buffer();
  call.stateIn = in.buffer(), call.stateOut = out.buffer();
  const Stream stream;
  call.stream = stream.get();
  fake_cuda_clear_record();
  plan(call);
  EXPECT_EQ(driverCalls(), "cuStreamGetCtx cuMemcpyDtoDAsync_v2 cuLaunchKernel cuLaunchKernel");
  const auto nu = reinterpret_cast<const float*>(out.data() + 128);
  EXPECT_EQ(std::vector<float>(nu, nu + 8), std::vector<float>(8, 0)) << "copied";
  EXPECT_NE(reinterpret_cast<const float*>(out.data() + 64)[0], 1) << "psi2 is the kernel's";
  const Launched launch = launches()[0];
  const auto word = [](const char* memory) { return reinterpret_cast<uint64_t>(memory); };
  EXPECT_EQ(launch.words[3], word(in.data() + 64)) << "psi2 in";
  EXPECT_EQ(launch.words[4], word(in.data())) << "step in";
  EXPECT_EQ(launch.words[8], word(out.data() + 64)) << "psi2 out";
  EXPECT_EQ(launch.words[9], word(out.data())) << "step out";

  fake_cuda_fail("cuMemcpyDtoDAsync_v2", 1, CUDA_ERROR_UNKNOWN, FAKE_CUDA_ONCE);
  EXPECT_EQ(refusal([&] { plan(call); }),
            "ABORTED: copying a field of the state on cuda:0 failed: CUDA_ERROR_UNKNOWN, unknown error");
  call.stateOut = in.buffer();
  fake_cuda_clear_record();
  plan(call);
  EXPECT_EQ(fake_cuda_call_count("cuMemcpyDtoDAsync_v2"), 0u) << "in place there is nothing to copy";
}

TEST_F(CudaState, OperationsFailWithTheDriver) {
  const host::Package package = power();
  const Plan plan(package, kForward, host::onCuda());
  fake_cuda_fail("cuMemAlloc_v2", 1, CUDA_ERROR_OUT_OF_MEMORY, FAKE_CUDA_ONCE);
  EXPECT_EQ(refusal([&] { State(plan, 5); }),
            "RESOURCE_EXHAUSTED: allocating 192 bytes on cuda:0 for a state failed: "
            "CUDA_ERROR_OUT_OF_MEMORY, out of "
            "memory");
  State state(plan, 5);
  std::vector<float> psi2(5);
  const auto failing = [&](const char* function, auto action) {
    fake_cuda_fail(function, 1, CUDA_ERROR_UNKNOWN, FAKE_CUDA_ONCE);
    return refusal(action);
  };
  const std::string unknown = " failed: CUDA_ERROR_UNKNOWN, unknown error";
  EXPECT_EQ(failing("cuMemcpyHtoDAsync_v2", [&] { state.write("psi2", psi2.data(), 5); }),
            "FAILED_PRECONDITION: copying 20 bytes to cuda:0" + unknown);
  EXPECT_EQ(failing("cuMemcpyDtoHAsync_v2", [&] { state.read("psi2", psi2.data(), 5); }),
            "FAILED_PRECONDITION: copying 20 bytes from cuda:0" + unknown);
  EXPECT_EQ(failing("cuStreamSynchronize", [&] { state.reset(); }),
            "FAILED_PRECONDITION: waiting for a copy to cuda:0" + unknown);
  EXPECT_EQ(failing("cuStreamSynchronize", [&] { state.read("psi2", psi2.data(), 5); }),
            "FAILED_PRECONDITION: waiting for a copy from cuda:0" + unknown);
}

TEST_F(CudaState, WarmupIsTheKernelsToJudge) {
  const host::Package package = open(forCuda(warmup("forward")));
  const Plan plan(package, "warmup:forward@f32[*x*]", host::onCuda());
  normc_request request = host::onCuda();
  request.steady = 1;
  const Plan steady(package, "warmup:forward@f32[*x*]", request);
  State state(plan, 8);
  const int64_t later = 1000;
  state.write("step", &later, 1);
  const CudaLayerNorm norm(4, 8);
  Call call;
  call.x = norm.matrix(norm.x), call.y = norm.matrix(norm.y);
  call.state = &state;
  fake_cuda_clear_record();
  plan(call);
  EXPECT_EQ(launchedFunctions(), "warmup_statistics warmup_apply") << "the step is never read back";
  fake_cuda_clear_record();
  steady(call);
  EXPECT_EQ(launchedFunctions(), "warmup_apply");
  EXPECT_NE(steady.describe().find("steady: phases of warmup are left out\n"), std::string::npos);
  EXPECT_EQ(plan.describe().find("steady"), std::string::npos);
}

}  // namespace
}  // namespace normc::test
