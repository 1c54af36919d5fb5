// Phases whose blocks wait for each other: how they are launched, what is cleared before, and which devices
// they fit.
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using namespace cuda;

constexpr const char* kProblem = "layer_norm:backward@f32[*x*]";

/// A layer norm whose first phase has `blocks` for each chunk, which meet over its first workspace.
package::Kernel cooperative(int64_t blocks, std::optional<int64_t> features = {}) {
  package::Kernel kernel = forCuda(layerNorm("backward", features));
  kernel.phases[0].launch->cooperative = blocks;
  kernel.operands[8].access = package::Access::Zeroed;
  return kernel;
}

/// A plan of it, and a call on a stream of its own.
struct Streamed {
  explicit Streamed(const host::Package& package) : plan(package, kProblem, host::onCuda()) {
    call.stream = stream.get();
  }
  const Plan plan;
  const CudaLayerNorm norm{33, 12};
  const Stream stream;
  Call call = norm.backward();
};

class CudaCooperative : public CudaTest {};

TEST_F(CudaCooperative, IsLaunchedSoThatAllBlocksAreThereAtOnce) {
  const host::Package package = open(cooperative(5));
  const Plan plan(package, kProblem, host::onCuda());
  plan(CudaLayerNorm(33, 12).backward());
  const std::vector<Launched> all = launches();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].cooperative);
  EXPECT_EQ(all[0].grid, (std::vector<unsigned>{30, 1, 1})) << "6 chunks of 5 blocks";
  EXPECT_EQ(all[0].cluster[0], 1u);
  EXPECT_FALSE(all[1].cooperative);
}

TEST_F(CudaCooperative, FindsItsWorkspaceCleared) {
  const host::Package package = open(cooperative(5));
  const Streamed on(package);
  fake_cuda_clear_record();
  on.plan(on.call);
  EXPECT_EQ(driverCalls(), "cuStreamGetCtx cuMemsetD8Async cuLaunchKernelEx cuLaunchKernel");
  const Launched launch = launches()[0];
  const auto* first = reinterpret_cast<const float*>(launch.words[8]);
  const auto* second = reinterpret_cast<const uint32_t*>(launch.words[9]);
  for (int i = 0; i < 6 * 12; ++i) ASSERT_EQ(first[i], 0) << i;
  EXPECT_EQ(second[0], 0xffffffffu) << "what is not said to be zero is left as it was";
}

TEST_F(CudaCooperative, IsClearedAgainWheneverAGraphIsReplayed) {
  const host::Package package = open(cooperative(5));
  const Streamed on(package);
  const Current current;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuStreamBeginCapture_v2(on.stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(refusal([&] { on.plan(on.call); }), "accepted");
  ASSERT_EQ(cuStreamEndCapture(on.stream.get(), &graph), CUDA_SUCCESS) << "no call was illegal";
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  for (int replay = 0; replay < 3; ++replay) {
    on.norm.workspace.floats()[70] = 1;
    ASSERT_EQ(cuGraphLaunch(exec, on.stream.get()), CUDA_SUCCESS);
    EXPECT_EQ(reinterpret_cast<const float*>(launches().back().words[8])[70], 0);
    EXPECT_TRUE(launches()[2 * replay].cooperative) << "as it was captured";
  }
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

TEST_F(CudaCooperative, ThatADeviceDoesNotHoldIsRefusedWhenThePlanIsMade) {
  restart({{.major = 9, .minor = 0, .multiprocessors = 2, .memory_bytes = 0}});
  const host::Package fits = open(cooperative(8)), large = open(cooperative(9));
  EXPECT_EQ(refusal([&] { Plan(fits, kProblem, host::onCuda()); }), "accepted")
      << "8 chunks of 8 blocks at most";
  EXPECT_EQ(refusal([&] { Plan(large, kProblem, host::onCuda()); }),
            "FAILED_PRECONDITION: 'layer_norm_backward' is launched with 72 blocks that wait for each other; "
            "cuda:0 holds 64 of "
            "them at once, 32 on each of 2 multiprocessors: compile for it with a smaller 'grid' or fewer "
            "'chunks', or with a "
            "streamed schedule");
}

TEST_F(CudaCooperative, IsJudgedByTheChunksThatItsFeaturesGive) {
  restart({{.major = 9, .minor = 0, .multiprocessors = 2, .memory_bytes = 0}});
  const auto over = [](std::optional<int64_t> features) {
    package::Kernel kernel = forCuda(layerNorm("backward", features));
    kernel.phases[1].launch->cooperative = 30;
    const host::Package package = open(kernel);
    return refusal(
        [&] { Plan(package, features ? "layer_norm:backward@f32[*x8]" : kProblem, host::onCuda()); });
  };
  EXPECT_EQ(over(8), "accepted") << "2 chunks of 4 features";
  EXPECT_EQ(over({}).substr(0, 70), "FAILED_PRECONDITION: 'layer_norm_finish' is launched with 120 blocks t");
}

TEST_F(CudaCooperative, TellsWhatTheDriverRefuses) {
  const host::Package package = open(cooperative(5));
  fake_cuda_fail("cuOccupancyMaxActiveBlocksPerMultiprocessor", 1, CUDA_ERROR_UNKNOWN, FAKE_CUDA_ONCE);
  EXPECT_EQ(
      refusal([&] { Plan(package, kProblem, host::onCuda()); }),
      "FAILED_PRECONDITION: asking how many blocks of 'layer_norm_backward' a multiprocessor holds failed: "
      "CUDA_ERROR_UNKNOWN, unknown error");
  const Plan plan(package, kProblem, host::onCuda());
  const CudaLayerNorm norm;
  fake_cuda_fail("cuMemsetD8Async", 1, CUDA_ERROR_UNKNOWN, FAKE_CUDA_ONCE);
  EXPECT_EQ(refusal([&] { plan(norm.backward()); }),
            "ABORTED: clearing workspace on cuda:0 failed: CUDA_ERROR_UNKNOWN, unknown error");
  fake_cuda_fail("cuLaunchKernelEx", 1, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, FAKE_CUDA_ONCE);
  EXPECT_EQ(refusal([&] { plan(norm.backward()); }),
            "ABORTED: launching phase 0 ('layer_norm_backward') on cuda:0 failed: "
            "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, too "
            "many blocks in cooperative launch; its blocks wait for each other and have to be there at once: "
            "this process has "
            "but a part of the device; give it the whole device, or compile a streamed schedule");
}

}  // namespace
}  // namespace normc::test
