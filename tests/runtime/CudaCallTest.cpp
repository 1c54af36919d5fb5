// Calls as hosts make them: tensors of the wrong device, streams and contexts of all kinds, capture, threads.
#include <optional>
#include <thread>

#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using namespace cuda;

const char* const kProblem = "layer_norm:forward@f32[*x*]";

class CudaCall : public CudaTest {
 protected:
  host::Package package = open(cudaPackage({forCuda(layerNorm("forward")), forCuda(layerNorm("backward"))}));

  static CUcontext currentContext() {
    CUcontext context = nullptr;
    cuCtxGetCurrent(&context);
    return context;
  }
  /// A second context of device 0, as a host may have one; current afterwards.
  static CUcontext ownContext() {
    CUcontext context = nullptr;
    cuInit(0);
    EXPECT_EQ(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    return context;
  }
};

TEST_F(CudaCall, TakesTensorsOfItsDeviceAlone) {
  const Plan plan(package, kProblem, host::onCuda());
  const CudaLayerNorm norm;
  const auto refused = [&](auto change) {
    Call call = norm.forward();
    change(call);
    return refusal([&] { plan(call); });
  };
  EXPECT_EQ(refused([&](Call& c) { c.x = Tensor(norm.x.floats(), {32, 8}); }),
            "INVALID_ARGUMENT: x is on device type 1; this plan runs on cuda:0 (kDLCUDA, 2)");
  EXPECT_EQ(refused([&](Call& c) { c.scale = Tensor(norm.scale.floats(), {8}); }),
            "INVALID_ARGUMENT: scale is on device type 1; this plan runs on cuda:0 (kDLCUDA, 2)");
  EXPECT_EQ(refused([&](Call& c) { c.y = norm.matrix(norm.y).onCuda(1); }),
            "INVALID_ARGUMENT: y is on cuda:1; this plan runs on cuda:0");
  EXPECT_EQ(refused([&](Call& c) { c.x = Tensor(norm.x.floats(), {32, 7}).onCuda(); }),
            "INVALID_ARGUMENT: y has size 8 in dimension 1, x has 7; they must have the same shape");
  EXPECT_EQ(refused([&](Call& c) { c.saved = {norm.saved.data() + 4, c.saved.bytes}; }),
            "INVALID_ARGUMENT: saved is not aligned to 8 bytes");
  EXPECT_EQ(refused([&](Call& c) {
              c.x = Tensor(norm.x.data() + 2, DLDataType{kDLFloat, 32, 1}, {31, 8}).onCuda();
            }),
            "INVALID_ARGUMENT: x is not aligned to its elements of 4 bytes");
  EXPECT_EQ(refused([&](Call& c) { c.y = Tensor(norm.x.floats(8), {32, 8}).onCuda(); }),
            "INVALID_ARGUMENT: y and x overlap but are not the same memory with the same strides; make them "
            "the same "
            "or apart");
  EXPECT_EQ(fake_cuda_launch_count(), 0u);
}

TEST_F(CudaCall, TensorsOfADeviceAreRefusedByTheProcessor) {
  if (hostIsa() == "none") GTEST_SKIP() << "this processor has no set that packages know";
  LayerNorm norm;
  Call call = norm.forward();
  call.x = norm.matrix(norm.x).onCuda();
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }),
            "INVALID_ARGUMENT: x is on device type 2; this plan runs on the CPU (kDLCPU, 1)");
  call = norm.forward();
  call.stream = &call;
  EXPECT_EQ(refusal([&] { norm.forwardPlan(call); }),
            "INVALID_ARGUMENT: stream is given, but this plan runs on the CPU; leave it null");
}

TEST_F(CudaCall, RefusesStreamsOfOtherContexts) {
  restart({{9, 0, 0, 0}, {9, 0, 0, 0}});
  const Plan plan(package, kProblem, host::onCuda());
  const CudaLayerNorm norm;
  const Current elsewhere(1);
  const Stream other(1);
  Call call = norm.forward();
  call.stream = other.get();
  EXPECT_EQ(
      refusal([&] { plan(call); }),
      "INVALID_ARGUMENT: the stream belongs to another device; this plan runs on cuda:0: give it a stream of "
      "that device");
  const CUcontext own = ownContext();
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  call.stream = stream;
  EXPECT_EQ(refusal([&] { plan(call); }),
            "INVALID_ARGUMENT: the stream belongs to another context of cuda:0 than the plan; make the plan "
            "while the "
            "stream's context is current");
  EXPECT_EQ(currentContext(), own) << "as it was";
  EXPECT_EQ(fake_cuda_launch_count(), 0u);
  cuStreamDestroy_v2(stream);
  cuCtxDestroy_v2(own);
}

TEST_F(CudaCall, LivesInTheContextThatIsCurrentWhenThePlanIsMade) {
  const CUcontext own = ownContext();
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  {
    const Plan plan(package, kProblem, host::onCuda());
    EXPECT_EQ(fake_cuda_call_count("cuDevicePrimaryCtxRetain"), 0u) << "no second context is made";
    const CudaLayerNorm norm;
    Call call = norm.forward();
    call.stream = stream;
    plan(call);
    CUcontext popped;
    cuCtxPopCurrent_v2(&popped);
    plan(call);
    EXPECT_EQ(currentContext(), nullptr);
    cuCtxPushCurrent_v2(own);
    EXPECT_EQ(launches().size(), 2u);
  }
  cuStreamDestroy_v2(stream);
  cuCtxDestroy_v2(own);
}

TEST_F(CudaCall, LivesInThePrimaryContextOtherwise) {
  restart({{9, 0, 0, 0}, {9, 0, 0, 0}});
  const Current elsewhere(1);
  const CUcontext before = currentContext();
  const Plan plan(package, kProblem, host::onCuda(0));
  EXPECT_EQ(currentContext(), before);
  const CudaLayerNorm norm;
  const Stream stream(0);
  Call call = norm.forward();
  call.stream = stream.get();
  plan(call);
  EXPECT_EQ(currentContext(), before);
  EXPECT_EQ(launches()[0].device, 0);
  for (const uintptr_t special : {uintptr_t{0}, kLegacyStream, kPerThreadStream}) {
    call.stream = reinterpret_cast<void*>(special);
    EXPECT_EQ(refusal([&] { plan(call); }), "accepted") << "every context has stream " << special;
  }
}

TEST_F(CudaCall, ServesSeveralDevices) {
  restart({{9, 0, 0, 0}, {8, 0, 0, 0}, {9, 0, 0, 0}});
  package =
      open(cudaPackage({forCuda(layerNorm("forward"), "sm_80"), forCuda(layerNorm("forward"), "sm_90")}));
  std::vector<Plan> plans;
  for (int device = 0; device < 3; ++device) plans.emplace_back(package, kProblem, host::onCuda(device));
  for (int device : {2, 0, 1}) {
    const DeviceBuffer memory(4096, device);
    Call call;
    call.x = call.y = Tensor(memory.floats(), {4, 8}).onCuda(device);
    call.scale = Tensor(memory.floats(64), {8}).onCuda(device);
    call.bias = Tensor(memory.floats(96), {8}).onCuda(device);
    call.saved = {memory.floats(128), 128};
    plans[device](call);
  }
  const std::vector<Launched> all = launches();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].device, 2);
  EXPECT_EQ(all[1].device, 0);
  EXPECT_EQ(all[2].device, 1);
  EXPECT_NE(plans[0].describe().find("PTX for sm_90"), std::string::npos);
  EXPECT_NE(plans[1].describe().find("PTX for sm_80"), std::string::npos);
}

TEST_F(CudaCall, MayBeCapturedAndReplayed) {
  package::Kernel kernel = forCuda(powerNorm("forward"));
  kernel.phases[1].launch->dependent = true;
  package = open(cudaPackage({kernel}));
  const Plan plan(package, "power_norm:forward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm(4, 8);
  const DeviceBuffer in(plan.stateBytes(8)), out(plan.stateBytes(8));
  const normc_sizes sizes = norm.sizes();
  host::check(normc_plan_state_init(plan.get(), &sizes, in.data(), in.buffer().bytes));
  Call call = norm.forward();
  call.saved = {}, call.workspace = norm.workspace.buffer();
  call.stateIn = in.buffer(), call.stateOut = out.buffer();
  const Stream stream;
  call.stream = stream.get();
  const Current current;
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    fake_cuda_clear_record();
    ASSERT_EQ(cuStreamBeginCapture_v2(stream.get(), mode), CUDA_SUCCESS);
    EXPECT_EQ(refusal([&] { plan(call); }), "accepted");
    EXPECT_EQ(fake_cuda_launch_count(), 0u) << "nothing has run";
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(cuStreamEndCapture(stream.get(), &graph), CUDA_SUCCESS) << "no call was illegal";
    ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    for (int replay = 0; replay < 3; ++replay) EXPECT_EQ(cuGraphLaunch(exec, stream.get()), CUDA_SUCCESS);
    EXPECT_EQ(fake_cuda_launch_count(), 6u) << "two phases, three times";
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(launches()[i].dependent, i % 2 == 1) << "as they were captured";
    const auto nu = reinterpret_cast<const float*>(out.data() + 128);
    EXPECT_EQ(nu[7], 0) << "the copied field is part of the graph";
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
  }
}

TEST_F(CudaCall, OverlapsNoPhasesInAGraphThatCannotSaySo) {
  package::Kernel kernel = forCuda(layerNorm("backward"));
  kernel.phases[1].launch->dependent = true;
  for (const int version : {12020, 12030}) {
    fake_cuda_reset();
    fake_cuda_set_driver_version(version);
    cuInit(0);
    const host::Package package = open(kernel);
    const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
    const CudaLayerNorm norm;
    const Stream stream;
    Call call = norm.backward();
    call.stream = stream.get();
    const Current current;
    plan(call);
    EXPECT_TRUE(launches().back().dependent) << "outside a graph";
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(cuStreamBeginCapture_v2(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(refusal([&] { plan(call); }), "accepted");
    ASSERT_EQ(cuStreamEndCapture(stream.get(), &graph), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuGraphLaunch(exec, stream.get()), CUDA_SUCCESS);
    EXPECT_EQ(launches().back().dependent, version >= 12030);
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
  }
}

TEST_F(CudaCall, IsReplayedWhileItsPlanLives) {
  std::optional<Plan> plan(std::in_place, package, kProblem, host::onCuda());
  const CudaLayerNorm norm;
  const Stream stream;
  Call call = norm.forward();
  call.stream = stream.get();
  const Current current;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  (*plan)(call);
  ASSERT_EQ(cuStreamEndCapture(stream.get(), &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, stream.get()), CUDA_SUCCESS);
  const Plan same(package, kProblem, host::onCuda());
  plan.reset();
  EXPECT_EQ(cuGraphLaunch(exec, stream.get()), CUDA_SUCCESS)
      << "another plan of the kernel has the same code";
  EXPECT_EQ(launches().size(), 2u);
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

TEST_F(CudaCall, OnTheDefaultStreamIsRefusedWhileAnotherIsCaptured) {
  const Plan plan(package, kProblem, host::onCuda());
  const CudaLayerNorm norm;
  const Stream stream;
  const Current current;
  ASSERT_EQ(cuStreamBeginCapture_v2(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(refusal([&] { plan(norm.forward()); }),
            "ABORTED: launching phase 0 ('layer_norm_forward') on cuda:0 failed: "
            "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "
            "operation would make the legacy stream depend on a capturing blocking stream; a stream is being "
            "captured: give execute the captured stream, and do nothing else with the device meanwhile");
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream.get(), &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CudaCall, PlansAndStatesMayComeAndGoWhileAStreamIsCaptured) {
  package = open(cudaPackage({forCuda(powerNorm("forward"))}));
  const char* const problem = "power_norm:forward@f32[*x*]";
  const Stream stream;
  const Current current;
  const auto whileCaptured = [&](auto action) {
    EXPECT_EQ(cuStreamBeginCapture_v2(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    action();
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(stream.get(), &graph);
    cuGraphDestroy(graph);
    return result;
  };
  std::optional<Plan> plan;
  std::optional<State> state;
  EXPECT_EQ(whileCaptured([&] { plan.emplace(package, problem, host::onCuda()); }), CUDA_SUCCESS);
  state.emplace(*plan, 8);
  EXPECT_EQ(whileCaptured([&] { state.reset(), plan.reset(); }), CUDA_SUCCESS);
  EXPECT_EQ(fake_cuda_live_allocations(), 0u);
  EXPECT_EQ(
      whileCaptured([&] { std::thread([&] { plan.emplace(package, problem, host::onCuda()); }).join(); }),
      CUDA_SUCCESS);

  EXPECT_EQ(whileCaptured([&] {
              EXPECT_EQ(refusal([&] { State(*plan, 8); }),
                        "FAILED_PRECONDITION: copying 192 bytes to cuda:0 failed: "
                        "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, operation "
                        "would make the legacy stream depend on a capturing blocking stream; a stream is "
                        "being captured: give "
                        "execute the captured stream, and do nothing else with the device meanwhile");
            }),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
      << "its values are copied on the default stream";
  EXPECT_EQ(fake_cuda_live_allocations(), 0u);
  for (CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    const CUstreamCaptureMode hosts = mode;
    cuThreadExchangeStreamCaptureMode(&mode);
    const Plan another(package, problem, host::onCuda());
    cuThreadExchangeStreamCaptureMode(&mode);
    EXPECT_EQ(mode, hosts) << "the thread's mode is as the host set it";
  }
}

TEST_F(CudaCall, MayComeFromManyThreadsAtOnce) {
  const Plan plan(package, kProblem, host::onCuda());
  constexpr int kThreads = 8, kCalls = 50;
  std::vector<std::thread> threads;
  std::vector<std::string> refusals(kThreads);
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const CudaLayerNorm norm(4 + t, 8);
      const Stream stream;
      Call call = norm.forward();
      call.stream = stream.get();
      for (int i = 0; i < kCalls; ++i)
        if (std::string text = refusal([&] { plan(call); }); text != "accepted") refusals[t] = text;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refusals, std::vector<std::string>(kThreads));
  std::vector<int> callsOf(kThreads);
  for (const Launched& launch : launches()) {
    const int t = static_cast<int>(launch.integer(11)) - 4;  // its rows tell the thread
    ASSERT_LT(t, kThreads);
    ++callsOf[t];
    EXPECT_EQ(launch.integer(14), 4 + t) << "units";
  }
  EXPECT_EQ(callsOf, std::vector<int>(kThreads, kCalls));
}

TEST_F(CudaCall, PlansMayBeMadeByManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> refusals(8);
  for (size_t t = 0; t < refusals.size(); ++t)
    threads.emplace_back([&, t] {
      refusals[t] = refusal([&] {
        const Plan plan(package, kProblem, host::onCuda());
        plan(CudaLayerNorm(4, 8).forward());
      });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refusals, std::vector<std::string>(8, "accepted"));
  EXPECT_EQ(fake_cuda_launch_count(), 8u);
  EXPECT_EQ(fake_cuda_live_objects(), 0u);
}

}  // namespace
}  // namespace normc::test
