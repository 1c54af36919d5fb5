// The whole path, results included: a launcher runs the kernels of kernels.c on the words that it is given,
// and a CUDA plan must compute bit for bit what a plan on the processor computes.
#include <dlfcn.h>

#include <map>

#include "runtime/abi/kernel.h"
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

/// Runs launches of the given kernels by the functions of kernels.c that have the same names.
class HostLauncher {
 public:
  explicit HostLauncher(std::vector<package::Kernel> kernels)
      : kernels_(std::move(kernels)), code_(dlopen(NORMC_TEST_KERNELS, RTLD_NOW)) {
    fake_cuda_set_launcher(
        [](void* self, const fake_cuda_launch* launch) {
          return static_cast<HostLauncher*>(self)->run(*launch);
        },
        this);
  }
  ~HostLauncher() {
    fake_cuda_set_launcher(nullptr, nullptr);
    dlclose(code_);
  }
  HostLauncher(const HostLauncher&) = delete;

 private:
  int run(const fake_cuda_launch& launch) const {
    std::string name = launch.function;
    if (name.ends_with("_any")) name.resize(name.size() - 4);
    const auto phase = reinterpret_cast<normc_phase>(dlsym(code_, name.c_str()));
    for (const package::Kernel& kernel : kernels_)
      for (size_t i = 0; i < kernel.phases.size(); ++i)
        if (kernel.phases[i].symbol == name) return run(launch, kernel, i, phase);
    return cuda::CUDA_ERROR_LAUNCH_FAILED;
  }

  static int run(const fake_cuda_launch& launch, const package::Kernel& kernel, size_t phase,
                 normc_phase function) {
    const auto* next = static_cast<const int64_t*>(launch.parameters);
    std::vector<normc_operand> operands(kernel.operands.size());
    for (normc_operand& operand : operands) operand = {reinterpret_cast<void*>(*next++), 0, 0, 0};
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!hasStrides(kernel.operands[i])) continue;
      operands[i].segment_stride = *next++;
      operands[i].row_stride = *next++;
    }
    normc_kernel_args args = {operands.data(), nullptr, nullptr, next[0], next[1], next[2]};
    args.scalar = reinterpret_cast<const double*>(next += 3);
    args.cut = reinterpret_cast<const normc_cut*>(next += kernel.scalars.size());
    for (int64_t task = 0; task < args.cut[phase].chunks; ++task) function(&args, task);
    return launch.grid[0] == args.cut[phase].chunks ? 0 : cuda::CUDA_ERROR_LAUNCH_FAILED;
  }

  std::vector<package::Kernel> kernels_;
  void* code_;
};

class CudaRun : public CudaTest {
 protected:
  std::vector<package::Kernel> kernels = {forCuda(layerNorm("forward")), forCuda(layerNorm("backward")),
                                          forCuda(powerNorm("forward")), forCuda(powerNorm("backward"))};
  host::Package package = open(cudaPackage(kernels));
  HostLauncher launcher{kernels};

  static void put(const std::vector<float>& from, const DeviceBuffer& to) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(float));
  }
  static std::vector<float> get(const DeviceBuffer& from, size_t count) {
    return {from.floats(), from.floats() + count};
  }
  /// The arrays of a layer norm on the device, with its values.
  static void fill(const LayerNorm& values, const CudaLayerNorm& device) {
    put(values.x, device.x), put(values.dy, device.dy);
    put(values.scale, device.scale), put(values.bias, device.bias);
  }
};

TEST_F(CudaRun, ComputesWhatTheProcessorComputes) {
  for (const int64_t features : {8, 10}) {
    LayerNorm expected(33, features);
    expected.forwardPlan(expected.forward());
    expected.backwardPlan(expected.backward());
    const CudaLayerNorm device(33, features);
    fill(expected, device);
    const Plan forward(package, "layer_norm:forward@f32[*x*]", host::onCuda());
    const Plan backward(package, "layer_norm:backward@f32[*x*]", host::onCuda());
    forward(device.forward());
    backward(device.backward());
    EXPECT_EQ(get(device.y, 33 * features), expected.y);
    EXPECT_EQ(get(device.dx, 33 * features), expected.dx);
    EXPECT_EQ(get(device.dscale, features), expected.dscale);
    EXPECT_EQ(get(device.dbias, features), expected.dbias);
  }
}

TEST_F(CudaRun, TrainsWithStateOnTheDevice) {
  PowerNorm expected(33, 8);
  const CudaLayerNorm device(33, 8);
  fill(expected, device);
  const Plan forward(package, "power_norm:forward@f32[*x*]", host::onCuda());
  const Plan backward(package, "power_norm:backward@f32[*x*]", host::onCuda());
  State state(forward, 8);
  const DeviceBuffer saved(forward.savedBytes(expected.sizes()));
  for (int step = 0; step < 3; ++step) {
    expected.forwardPlan(expected.forward());
    expected.backwardPlan(expected.backward());
    Call call = device.forward();
    call.saved = saved.buffer(), call.workspace = device.workspace.buffer(), call.state = &state;
    forward(call);
    call = device.backward();
    call.saved = saved.buffer(), call.state = &state;
    backward(call);
  }
  std::vector<float> psi2(8), nu(8);
  int64_t steps;
  state.read("psi2", psi2.data(), 8);
  state.read("nu", nu.data(), 8);
  state.read("step", &steps, 1);
  EXPECT_EQ(get(device.y, 33 * 8), expected.y);
  EXPECT_EQ(get(device.dx, 33 * 8), expected.dx);
  EXPECT_EQ(psi2, expected.field("psi2"));
  EXPECT_EQ(nu, expected.field("nu"));
  EXPECT_EQ(steps, 3);
}

TEST_F(CudaRun, ReplaysAGraphWithItsStateCountingOn) {
  const Plan forward(package, "power_norm:forward@f32[*x*]", host::onCuda());
  const LayerNorm values(4, 8);
  const CudaLayerNorm device(4, 8);
  fill(values, device);
  State state(forward, 8);
  Call call = device.forward();
  call.saved = {}, call.workspace = device.workspace.buffer(), call.state = &state;
  const Stream stream;
  call.stream = stream.get();
  const Current current;
  cuda::CUgraph graph = nullptr;
  cuda::CUgraphExec exec = nullptr;
  ASSERT_EQ(cuda::cuStreamBeginCapture_v2(stream.get(), cuda::CU_STREAM_CAPTURE_MODE_GLOBAL),
            cuda::CUDA_SUCCESS);
  forward(call);
  ASSERT_EQ(cuda::cuStreamEndCapture(stream.get(), &graph), cuda::CUDA_SUCCESS);
  ASSERT_EQ(cuda::cuGraphInstantiateWithFlags(&exec, graph, 0), cuda::CUDA_SUCCESS);
  for (int64_t replay = 1; replay <= 5; ++replay) {
    ASSERT_EQ(cuda::cuGraphLaunch(exec, stream.get()), cuda::CUDA_SUCCESS);
    int64_t step;
    state.read("step", &step, 1);
    EXPECT_EQ(step, replay) << "the step is read on the device, each time";
  }
}

TEST_F(CudaRun, RunsInPlace) {
  LayerNorm expected(8, 8);
  const CudaLayerNorm device(8, 8);
  fill(expected, device);
  expected.forwardPlan(expected.forward());
  const Plan forward(package, "layer_norm:forward@f32[*x*]", host::onCuda());
  Call call = device.forward();
  call.y = call.x;
  forward(call);
  EXPECT_EQ(get(device.x, 64), expected.y);
}

}  // namespace
}  // namespace normc::test
