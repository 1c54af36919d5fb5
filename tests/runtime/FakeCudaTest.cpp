// The fake driver's own promises: what it refuses, finds and records.
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using namespace cuda;

const char* const kTwoParameters =
    ".version 8.0\n.target sm_90\n.visible .entry copy(\n .param .u64 .ptr .global .align 16 copy_0,\n"
    " .param .u32 copy_1\n)\n.reqntid 32\n{ ret; }\n"
    ".visible .entry many(.param .align 8 .b8 many_0[24], .param .f32 many_1, .param .u8 many_2)\n.maxntid "
    "64\n{ ret; }\n";

class FakeCuda : public CudaTest {
 protected:
  Current current;

  static CUmodule load(const char* image = kTwoParameters) {
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    return module;
  }
  static CUfunction function(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
  }
  static CUresult launch(CUfunction function, unsigned grid, unsigned block, void** parameters,
                         unsigned shared = 0) {
    return cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, nullptr, parameters, nullptr);
  }
  static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, bytes), CUDA_SUCCESS);
    return memory;
  }
};

TEST_F(FakeCuda, FillsMemoryWithPoisonBetweenRedZones) {
  const CUdeviceptr memory = allocate(100);
  EXPECT_EQ(memory % 256, 0u);
  auto* const bytes = reinterpret_cast<unsigned char*>(memory);
  EXPECT_EQ(bytes[0], 0xff);
  EXPECT_EQ(bytes[99], 0xff);
  fake_cuda_allocation allocation;
  ASSERT_TRUE(fake_cuda_allocation_of(memory + 99, &allocation));
  EXPECT_EQ(allocation.begin, memory);
  EXPECT_EQ(allocation.end, memory + 100);
  EXPECT_TRUE(fake_cuda_allocation_of(memory + 100, &allocation)) << "its red zone";
  EXPECT_TRUE(fake_cuda_allocation_of(memory - 1, &allocation));
  EXPECT_FALSE(fake_cuda_allocation_of(memory + 100 + 256, &allocation));
  int own;
  EXPECT_FALSE(fake_cuda_allocation_of(reinterpret_cast<uint64_t>(&own), &allocation));
  EXPECT_EQ(fake_cuda_damaged_allocations(), 0u);
  bytes[100] = 0;
  EXPECT_EQ(fake_cuda_damaged_allocations(), 1u) << "one byte past the end";
  bytes[100] = 0xa5;
  bytes[-1] = 7;
  EXPECT_EQ(fake_cuda_damaged_allocations(), 1u) << "one byte before the begin";
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(fake_cuda_damaged_allocations(), 1u) << "remembered";
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE) << "freed twice";
  fake_cuda_reset();
}

TEST_F(FakeCuda, ChecksEveryCopy) {
  const CUdeviceptr memory = allocate(64);
  char host[128] = {};
  EXPECT_EQ(cuMemcpyHtoD_v2(memory, host, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD_v2(memory + 1, host, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(host, memory - 1, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD_v2(memory, reinterpret_cast<CUdeviceptr>(host), 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32_v2(memory, 0x01020304, 16), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32_v2(memory, 0, 17), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(host, memory, 64), CUDA_SUCCESS);
  EXPECT_EQ(host[63], 1);
  size_t free, total;
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total - free, 64u);
  CUdeviceptr more;
  EXPECT_EQ(cuMemAlloc_v2(&more, total), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(FakeCuda, ChecksLaunchesAgainstThePtx) {
  const CUmodule module = load();
  const CUfunction copy = function(module, "copy");
  uint64_t pointer = 0x1122334455667788;
  uint32_t count = 9;
  void* parameters[] = {&pointer, &count};
  EXPECT_EQ(launch(copy, 3, 32, parameters), CUDA_SUCCESS);
  EXPECT_EQ(launch(copy, 0, 32, parameters), CUDA_ERROR_INVALID_VALUE) << "an empty grid";
  EXPECT_EQ(launch(copy, 3, 64, parameters), CUDA_ERROR_INVALID_VALUE) << "reqntid is 32";
  EXPECT_EQ(launch(copy, 3, 32, parameters, 49153), CUDA_ERROR_INVALID_VALUE) << "48 KiB unless asked for";
  EXPECT_EQ(cuFuncSetAttribute(copy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49153), CUDA_SUCCESS);
  EXPECT_EQ(launch(copy, 3, 32, parameters, 49153), CUDA_SUCCESS);
  const CUfunction many = function(module, "many");
  EXPECT_EQ(launch(many, 1, 65, parameters), CUDA_ERROR_INVALID_VALUE) << "maxntid is 64";
  size_t bytes = 28;
  char buffer[32] = {};
  void* extra[] = {reinterpret_cast<void*>(kLaunchBufferPointer), buffer,
                   reinterpret_cast<void*>(kLaunchBufferSize), &bytes, nullptr};
  EXPECT_EQ(cuLaunchKernel(many, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE)
      << "24 + 4 + 1 bytes";
  bytes = 29;
  EXPECT_EQ(cuLaunchKernel(many, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);

  fake_cuda_launch first;
  ASSERT_TRUE(fake_cuda_launch_at(0, &first));
  EXPECT_STREQ(first.function, "copy");
  EXPECT_STREQ(static_cast<const char*>(first.image), kTwoParameters);
  EXPECT_EQ(first.grid[0], 3u);
  ASSERT_EQ(first.parameter_bytes, 12u);
  EXPECT_EQ(std::memcmp(first.parameters, &pointer, 8), 0);
  EXPECT_EQ(std::memcmp(static_cast<const char*>(first.parameters) + 8, &count, 4), 0);
  CUfunction none;
  EXPECT_EQ(cuModuleGetFunction(&none, module, "cop"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(FakeCuda, ChecksClusters) {
  const CUfunction copy = function(load(), "copy");
  uint64_t pointer = 0;
  uint32_t count = 0;
  void* parameters[] = {&pointer, &count};
  CUlaunchAttribute attribute = {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {}, {}};
  const auto launch = [&](unsigned grid, unsigned cluster) {
    attribute.value.clusterDim = {cluster, 1, 1};
    const CUlaunchConfig config = {grid, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
    return cuLaunchKernelEx(&config, copy, parameters, nullptr);
  };
  EXPECT_EQ(launch(8, 4), CUDA_SUCCESS);
  EXPECT_EQ(launch(9, 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch(16, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE) << "more than 8 has to be asked for";
  EXPECT_EQ(cuFuncSetAttribute(copy, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), CUDA_SUCCESS);
  EXPECT_EQ(launch(16, 16), CUDA_SUCCESS);
}

TEST_F(FakeCuda, ChecksThatTheBlocksOfACooperativeLaunchAreThereAtOnce) {
  const CUfunction copy = function(load(), "copy");
  uint64_t pointer = 0;
  uint32_t count = 0;
  void* parameters[] = {&pointer, &count};
  int each = 0;
  ASSERT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, copy, 32, 0), CUDA_SUCCESS);
  CUlaunchAttribute attribute = {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {}, {}};
  attribute.value.cooperative = 1;
  const auto launch = [&](int grid) {
    const CUlaunchConfig config = {unsigned(grid), 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
    return cuLaunchKernelEx(&config, copy, parameters, nullptr);
  };
  EXPECT_EQ(launch(132 * each), CUDA_SUCCESS);
  fake_cuda_launch recorded;
  ASSERT_TRUE(fake_cuda_launch_at(0, &recorded));
  EXPECT_TRUE(recorded.cooperative);
  EXPECT_EQ(launch(132 * each + 1), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  attribute.value.cooperative = 0;
  EXPECT_EQ(launch(132 * each + 1), CUDA_SUCCESS);
  ASSERT_TRUE(fake_cuda_launch_at(1, &recorded));
  EXPECT_FALSE(recorded.cooperative);
}

TEST_F(FakeCuda, TellsWhatWasClearedUntilItIsFilledAgain) {
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc_v2(&memory, 256), CUDA_SUCCESS);
  uint64_t begin = 0, end = 0;
  EXPECT_FALSE(fake_cuda_take_cleared(&begin, &end));
  cuMemsetD8_v2(memory, 0, 64);
  cuMemsetD8Async(memory + 64, 0, 64, nullptr);
  cuMemsetD8_v2(memory + 32, 1, 8);
  ASSERT_TRUE(fake_cuda_take_cleared(&begin, &end));
  EXPECT_EQ(begin, memory + 64) << "the first is zero no longer";
  EXPECT_EQ(end, memory + 128);
  EXPECT_FALSE(fake_cuda_take_cleared(&begin, &end)) << "each is told once";
  cuMemFree_v2(memory);
}

TEST_F(FakeCuda, ChecksWhatALaunchMayBeAskedFor) {
  uint64_t pointer = 0;
  uint32_t count = 0;
  void* parameters[] = {&pointer, &count};
  CUlaunchAttribute attribute = {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {}, {}};
  attribute.value.programmaticStreamSerializationAllowed = 1;
  const CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
  EXPECT_EQ(cuLaunchKernelEx(&config, function(load(), "copy"), parameters, nullptr), CUDA_SUCCESS);
  fake_cuda_launch launch;
  ASSERT_TRUE(fake_cuda_launch_at(0, &launch));
  EXPECT_TRUE(launch.dependent);
  attribute.id = CUlaunchAttributeID(63);
  EXPECT_EQ(cuLaunchKernelEx(&config, function(load(), "copy"), parameters, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(FakeCuda, ChecksImages) {
  CUmodule module;
  EXPECT_EQ(cuModuleLoadData(&module, "nonsense"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.6\n.target sm_100\n"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&module, "sm_80 kernel"), CUDA_ERROR_NO_BINARY_FOR_GPU) << "a cubin";
  EXPECT_EQ(cuModuleLoadData(&module, "sm_90 kernel"), CUDA_SUCCESS);
  CUfunction function;
  EXPECT_EQ(cuModuleGetFunction(&function, module, "kernel"), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "kern"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(FakeCuda, RunsTheLauncherAndKeepsItsError) {
  const CUfunction copy = function(load(), "copy");
  int runs = 0;
  fake_cuda_set_launcher(
      [](void* user, const fake_cuda_launch* launch) {
        fake_cuda_allocation allocation;
        fake_cuda_allocation_of(*static_cast<const uint64_t*>(launch->parameters),
                                &allocation);  // it may ask
        return ++*static_cast<int*>(user) == 2 ? int(CUDA_ERROR_MISALIGNED_ADDRESS) : 0;
      },
      &runs);
  uint64_t pointer = allocate(16);
  uint32_t count = 0;
  void* parameters[] = {&pointer, &count};
  EXPECT_EQ(launch(copy, 1, 32, parameters), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(launch(copy, 1, 32, parameters), CUDA_SUCCESS) << "as a real launch does";
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(launch(copy, 1, 32, parameters), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(runs, 2);
  fake_cuda_reset();
}

TEST_F(FakeCuda, RefusesCallsThatACaptureForbids) {
  const Stream stream;
  const auto spoils = [&](auto action, CUresult expected) {
    EXPECT_EQ(cuStreamBeginCapture_v2(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(action(), expected);
    CUgraph graph;
    return cuStreamEndCapture(stream.get(), &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  };
  const CUdeviceptr memory = allocate(64);
  CUdeviceptr other;
  char host[64];
  const CUresult unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  EXPECT_TRUE(spoils([&] { return cuMemAlloc_v2(&other, 64); }, unsupported));
  EXPECT_TRUE(spoils([&] { return cuMemFree_v2(memory); }, unsupported));
  const CUmodule module = load();
  EXPECT_TRUE(spoils([&] { return cuModuleUnload(module); }, unsupported));
  EXPECT_TRUE(spoils([&] { return cuStreamSynchronize(stream.get()); }, unsupported));
  EXPECT_TRUE(spoils([&] { return cuStreamQuery(stream.get()); }, unsupported));
  EXPECT_TRUE(spoils([&] { return cuCtxSynchronize(); }, unsupported));
  EXPECT_TRUE(spoils([&] { return cuMemcpyDtoH_v2(host, memory, 64); }, unsupported));
  EXPECT_TRUE(
      spoils([&] { return cuMemsetD8Async(memory, 0, 64, nullptr); }, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));
  EXPECT_FALSE(spoils([&] { return cuMemsetD8Async(memory, 0, 64, stream.get()); }, CUDA_SUCCESS));
  EXPECT_EQ(reinterpret_cast<unsigned char*>(memory)[0], 0xff) << "captured, not run";
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_FALSE(spoils([&] { return cuMemFree_v2(memory); }, CUDA_SUCCESS)) << "the thread knows what it does";
  EXPECT_TRUE(spoils([&] { return cuStreamQuery(stream.get()); }, unsupported)) << "but not that";
  mode = CUstreamCaptureMode(3);
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
  CUgraph graph;
  EXPECT_EQ(cuStreamEndCapture(stream.get(), &graph), CUDA_ERROR_INVALID_VALUE) << "nothing to end";
  EXPECT_EQ(cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), unsupported);
}

TEST_F(FakeCuda, ReplaysNoLaunchOfCodeThatIsUnloaded) {
  const CUmodule module = load();
  const Stream stream;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr to = 0;
  unsigned count = 0;
  void* parameters[] = {&to, &count};
  ASSERT_EQ(cuStreamBeginCapture_v2(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchKernel(function(module, "copy"), 1, 1, 1, 32, 1, 1, 0, stream.get(), parameters, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(cuStreamEndCapture(stream.get(), &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, stream.get()), CUDA_SUCCESS);
  cuModuleUnload(module);
  EXPECT_EQ(cuGraphLaunch(exec, stream.get()), CUDA_ERROR_INVALID_HANDLE);
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
}

TEST_F(FakeCuda, FailsWhereItIsTold) {
  int count;
  fake_cuda_fail("cuDeviceGetCount", 3, CUDA_ERROR_UNKNOWN, FAKE_CUDA_ONCE);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
}

TEST_F(FakeCuda, MeasuresTimeWithEvents) {
  CUevent from, to;
  cuEventCreate(&from, 0);
  cuEventCreate(&to, 0);
  float milliseconds = -1;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, from, to), CUDA_ERROR_INVALID_HANDLE) << "not recorded";
  EXPECT_EQ(cuEventRecord(from, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(to, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuEventSynchronize(to), CUDA_SUCCESS);
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, from, to), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 0);
  cuEventDestroy_v2(from);
  EXPECT_EQ(cuEventRecord(from, nullptr), CUDA_ERROR_INVALID_HANDLE);
  cuEventDestroy_v2(to);
}

TEST_F(FakeCuda, ForgetsEverythingInAReset) {
  const CUdeviceptr memory = allocate(64);
  CUcontext context;
  cuCtxGetCurrent(&context);
  fake_cuda_reset();
  EXPECT_EQ(fake_cuda_live_allocations(), 0u);
  EXPECT_EQ(fake_cuda_call_count(nullptr), 0u);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_ERROR_INVALID_CONTEXT) << "no thread has a context left";
}

}  // namespace
}  // namespace normc::test
