// The driver: opened when it is wanted, and every way in which it can fail.
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

using namespace cuda;

const char* const kProblem = "layer_norm:forward@f32[*x*]";

class CudaDriver : public CudaTest {
 protected:
  static std::string count(const normc_context_options& options = fakeDriver()) {
    return refusal([&] { host::Context(options).cudaDevices(); });
  }
  /// Returns the result of making a plan if the next call of `function` fails.
  static std::string plan(const char* function, CUresult result, const package::Kernel& kernel) {
    fake_cuda_reset();
    const host::Package package = open(kernel);
    fake_cuda_fail(function, 1, result, FAKE_CUDA_ONCE);
    return refusal([&] { Plan(package, kProblem, host::onCuda()); });
  }
  static std::string plan(const char* function, CUresult result) {
    return plan(function, result, forCuda(layerNorm("forward")));
  }
};

TEST_F(CudaDriver, IsNotOpenedForTheProcessor) {
  normc_context_options options = oneThread();
  options.cuda_library = "libnormc_no_such_driver.so";
  const host::Package package = openInMemory(standardPackage(), host::Context(options));
  EXPECT_EQ(refusal([&] { Plan(package, kProblem); }), "accepted");
  EXPECT_EQ(fake_cuda_call_count(nullptr), 0u);
}

TEST_F(CudaDriver, MayBeMissing) {
  normc_context_options options = oneThread();
  options.cuda_library = "libnormc_no_such_driver.so";
  const std::string text = count(options);
  EXPECT_TRUE(
      text.starts_with("FAILED_PRECONDITION: no CUDA driver: cannot load libnormc_no_such_driver.so ("))
      << text;
  EXPECT_TRUE(text.ends_with("); install the NVIDIA driver, or ask for a plan on the CPU")) << text;
  const host::Package package =
      openInMemory(cudaPackage({forCuda(layerNorm("forward"))}), host::Context(options));
  EXPECT_EQ(refusal([&] { Plan(package, kProblem, host::onCuda()); }), text);
}

TEST_F(CudaDriver, MayBeAnotherLibrary) {
  normc_context_options options = oneThread();
  options.cuda_library = "libm.so.6";
  EXPECT_EQ(
      count(options),
      "FAILED_PRECONDITION: libm.so.6 has no function 'cuInit'; it is no CUDA driver, or a damaged one");
}

TEST_F(CudaDriver, MayBeTooOld) {
  fake_cuda_set_driver_version(11040);
  EXPECT_EQ(
      count(),
      "FAILED_PRECONDITION: the CUDA driver is for CUDA 11.4; this runtime needs 11.8 or newer: update the "
      "driver");
  fake_cuda_set_driver_version(11080);
  EXPECT_EQ(count(), "accepted");
}

TEST_F(CudaDriver, MayFailToStart) {
  fake_cuda_fail("cuInit", 1, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, FAKE_CUDA_ONCE);
  EXPECT_EQ(
      count(),
      "FAILED_PRECONDITION: starting the CUDA driver failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, system has "
      "unsupported display driver / cuda driver combination; libcuda and the kernel's module are of "
      "different "
      "versions: install one driver, or restart the machine");
  fake_cuda_fail("cuInit", 1, CUDA_ERROR_STUB_LIBRARY, FAKE_CUDA_ONCE);
  EXPECT_EQ(
      count(),
      "FAILED_PRECONDITION: starting the CUDA driver failed: CUDA_ERROR_STUB_LIBRARY, CUDA driver is a stub "
      "library; this libcuda is the toolkit's stub for linking; put the driver's own before it");
  fake_cuda_fail("cuInit", 1, CUresult(12345), FAKE_CUDA_ONCE);
  EXPECT_EQ(count(), "FAILED_PRECONDITION: starting the CUDA driver failed: CUDA error 12345");
  fake_cuda_fail("cuDriverGetVersion", 1, CUDA_ERROR_UNKNOWN, FAKE_CUDA_ONCE);
  EXPECT_EQ(count(),
            "FAILED_PRECONDITION: asking the CUDA driver for its version failed: CUDA_ERROR_UNKNOWN, unknown "
            "error");
  EXPECT_EQ(count(), "accepted") << "a failure is not remembered";
}

TEST_F(CudaDriver, MayHaveNoDevice) {
  fake_cuda_set_devices(0, nullptr);
  EXPECT_EQ(
      count(),
      "FAILED_PRECONDITION: starting the CUDA driver failed: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is "
      "detected; check that a device is visible to this process");
}

TEST_F(CudaDriver, TellsFactsAboutItsDevices) {
  const fake_cuda_device devices[] = {{9, 0, 0, 0}, {10, 3, 148, size_t{180} << 30}};
  fake_cuda_set_devices(2, devices);
  fake_cuda_set_driver_version(12080);
  const host::Context context(fakeDriver());
  EXPECT_EQ(context.cudaDevices(), 2);
  const normc_cuda_device device = context.cudaDevice(1);
  EXPECT_STREQ(device.name, "Fake GPU (sm_103)");
  EXPECT_EQ(device.compute_major, 10);
  EXPECT_EQ(device.compute_minor, 3);
  EXPECT_EQ(device.driver_version, 12080);
  EXPECT_EQ(device.multiprocessors, 148);
  EXPECT_EQ(device.threads_per_multiprocessor, 2048);
  EXPECT_EQ(device.registers_per_multiprocessor, 65536);
  EXPECT_EQ(device.clock_khz, 1980000);
  EXPECT_EQ(device.memory_clock_khz, 3201000);
  EXPECT_EQ(device.memory_bus_bits, 6144);
  EXPECT_EQ(device.memory_bytes, int64_t{180} << 30);
  EXPECT_EQ(device.l2_bytes, 60 << 20);
  EXPECT_EQ(device.shared_per_multiprocessor, 228 << 10);
  EXPECT_EQ(device.shared_per_block, 227 << 10);
  EXPECT_EQ(refusal([&] { context.cudaDevice(2); }),
            "INVALID_ARGUMENT: there is no device cuda:2; this machine has 2 CUDA devices, numbered from 0");
  EXPECT_EQ(fake_cuda_live_objects(), 0u) << "asking makes no context";

  normc_cuda_device unsized = {};
  EXPECT_EQ(
      refusal(normc_cuda_device_info(context.get(), 0, &unsized)),
      "INVALID_ARGUMENT: normc_cuda_device.struct_size is 0; set it to sizeof(normc_cuda_device), 336 with "
      "this header");
  EXPECT_EQ(refusal(normc_cuda_device_count(context.get(), nullptr)), "INVALID_ARGUMENT: count is null");
  EXPECT_EQ(refusal(normc_cuda_device_count(nullptr, nullptr)), "INVALID_ARGUMENT: context is null");
  EXPECT_EQ(refusal(normc_cuda_device_info(context.get(), 0, nullptr)), "INVALID_ARGUMENT: device is null");
}

TEST_F(CudaDriver, FailsAnyStepOfMakingAPlan) {
  const std::string blob = "blob 0 of the package in memory (ptx, sm_90)";
  const struct {
    const char* function;
    std::string doing;
  } steps[] = {
      {"cuDeviceGetCount", "counting the CUDA devices"},
      {"cuDeviceGet", "getting cuda:0"},
      {"cuCtxGetCurrent", "asking for the current context"},
      {"cuDevicePrimaryCtxRetain", "taking the primary context of cuda:0"},
      {"cuCtxPushCurrent_v2", "making the context of cuda:0 current"},
      {"cuModuleLoadDataEx", "loading " + blob + " on cuda:0"},
      {"cuModuleGetFunction", "finding 'layer_norm_forward' in " + blob},
      {"cuFuncLoad", "loading 'layer_norm_forward'"},
      {"cuFuncGetAttribute", "asking how many threads 'layer_norm_forward' may have"},
  };
  for (const auto& step : steps)
    EXPECT_EQ(plan(step.function, CUDA_ERROR_UNKNOWN),
              "FAILED_PRECONDITION: " + step.doing + " failed: CUDA_ERROR_UNKNOWN, unknown error");
  EXPECT_EQ(
      plan("cuModuleLoadDataEx", CUDA_ERROR_OUT_OF_MEMORY),
      "RESOURCE_EXHAUSTED: loading " + blob + " on cuda:0 failed: CUDA_ERROR_OUT_OF_MEMORY, out of memory");

  package::Kernel large = forCuda(layerNorm("forward"));
  large.phases[0].launch = package::Launch{.threads = 64, .cluster = 16};
  EXPECT_EQ(plan("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE, large),
            "FAILED_PRECONDITION: asking for clusters of 16 blocks for 'layer_norm_forward' failed: "
            "CUDA_ERROR_INVALID_VALUE, invalid argument");
  large.phases[0].launch = package::Launch{.threads = 64, .shared = 60000};
  EXPECT_EQ(plan("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE, large),
            "FAILED_PRECONDITION: asking for 60000 bytes of shared memory for 'layer_norm_forward' failed: "
            "CUDA_ERROR_INVALID_VALUE, invalid argument");
  EXPECT_EQ(fake_cuda_live_objects(), 0u) << "nothing is left behind";
}

TEST_F(CudaDriver, RepeatsWhatItsCompilerSays) {
  const host::Package package = open(forCuda(layerNorm("forward")));
  fake_cuda_set_jit_log("ptxas line 12; error: Unknown symbol\nptxas fatal: aborted\n");
  fake_cuda_fail("cuModuleLoadDataEx", 1, CUDA_ERROR_INVALID_PTX, FAKE_CUDA_ONCE);
  EXPECT_EQ(
      refusal([&] { Plan(package, kProblem, host::onCuda()); }),
      "FAILED_PRECONDITION: loading blob 0 of the package in memory (ptx, sm_90) on cuda:0 failed: "
      "CUDA_ERROR_INVALID_PTX, a PTX JIT compilation failed; it says: ptxas line 12; error: Unknown symbol | "
      "ptxas fatal: aborted");
  fake_cuda_set_jit_log("");
  fake_cuda_fail("cuModuleLoadDataEx", 1, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, FAKE_CUDA_ONCE);
  EXPECT_EQ(
      refusal([&] { Plan(package, kProblem, host::onCuda()); }),
      "FAILED_PRECONDITION: loading blob 0 of the package in memory (ptx, sm_90) on cuda:0 failed: "
      "CUDA_ERROR_UNSUPPORTED_PTX_VERSION, the provided PTX was compiled with a newer toolchain; the PTX is "
      "newer than this driver: update the driver, or compile the package where ptxas is at hand; it is PTX "
      "8.0, "
      "which drivers for CUDA 12.0 and newer read; this driver is for CUDA 13.0");
  fake_cuda_fail("cuModuleLoadDataEx", 1, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, FAKE_CUDA_ONCE);
  EXPECT_EQ(
      refusal([&] { Plan(package, kProblem, host::onCuda()); }),
      "FAILED_PRECONDITION: loading blob 0 of the package in memory (ptx, sm_90) on cuda:0 failed: "
      "CUDA_ERROR_JIT_COMPILER_NOT_FOUND, PTX JIT compiler library not found; compile the package where "
      "ptxas is at hand, so that it holds a cubin for this device");
}

TEST_F(CudaDriver, TakesPtxWhereItRefusesTheCubin) {
  package::Kernel kernel = forCuda(layerNorm("forward"));
  kernel.cubin = 0;
  const host::Package package = open(kernel);
  fake_cuda_fail("cuModuleLoadDataEx", 1, CUDA_ERROR_NO_BINARY_FOR_GPU, FAKE_CUDA_ONCE);
  const Plan plan(package, kProblem, host::onCuda());
  const std::string text = plan.describe();
  EXPECT_NE(
      text.find(
          "code: PTX for sm_90, compiled by the driver, because loading blob 1 of the package in memory "
          "(cubin, sm_90) on cuda:0 failed: CUDA_ERROR_NO_BINARY_FOR_GPU, no kernel image is available "
          "for execution on the device\n"),
      std::string::npos)
      << text;
  plan(CudaLayerNorm().forward());
  EXPECT_EQ(launchedFunctions(), "layer_norm_forward");
}

TEST_F(CudaDriver, ThatIsTooOldForPtxTakesOlderPtxOrSaysWhichWouldReadIt) {
  package::Kernel fast = forCuda(layerNorm("forward")), plain = fast;
  fast.cubin = 0;
  package::Writer both({}), one({});
  for (package::Writer* writer : {&both, &one}) {
    fast.norm = plain.norm = writer->addNorm("layer_norm", "hash", "text");
    fast.blob = writer->addBlob(ptxOf(fast), "ptx", "sm_90");  // of version 8.0, which bulk copies need
    fast.cubin = writer->addBlob(cubinOf(fast), "cubin", "sm_90");
    writer->addKernel(fast);
  }
  std::string older = ptxOf(plain);
  plain.blob = both.addBlob(older.replace(older.find("8.0"), 3, "7.8"), "ptx", "sm_90");
  both.addKernel(plain);
  const auto refuseCubin = [] {
    fake_cuda_fail("cuModuleLoadDataEx", 1, CUDA_ERROR_NO_BINARY_FOR_GPU, FAKE_CUDA_ONCE);
  };
  const std::string why =
      "loading blob 0 of the package in memory (ptx, sm_90) on cuda:0 failed: "
      "CUDA_ERROR_UNSUPPORTED_PTX_VERSION, the provided "
      "PTX was compiled with a newer toolchain; the PTX is newer than this driver: update the driver, or "
      "compile the package "
      "where ptxas is at hand; it is PTX 8.0, which drivers for CUDA 12.0 and newer read; this driver is for "
      "CUDA 11.8; it was "
      "tried, because loading blob 1 of the package in memory (cubin, sm_90) on cuda:0 failed: "
      "CUDA_ERROR_NO_BINARY_FOR_GPU, no "
      "kernel image is available for execution on the device";
  fake_cuda_set_driver_version(11080);
  const host::Package alone = open(one), together = open(both);
  EXPECT_EQ(refusal([&] { Plan(alone, kProblem, host::onCuda()); }), "accepted") << "there is a cubin";
  refuseCubin();
  EXPECT_EQ(refusal([&] { Plan(alone, kProblem, host::onCuda()); }), "FAILED_PRECONDITION: " + why);
  refuseCubin();
  const std::string text = Plan(together, kProblem, host::onCuda()).describe();
  EXPECT_NE(text.find("kernel: 1 of the package in memory"), text.npos) << text;
  EXPECT_NE(text.find("code: PTX for sm_90, compiled by the driver\n"), text.npos) << text;
  EXPECT_NE(text.find("(layer_norm:forward@f32[*x*], sm_90, hand): " + why + "\n"), text.npos) << text;
}

TEST_F(CudaDriver, ReadsPtxAsItsReleaseNotesSay) {
  EXPECT_EQ(oldestDriverForPtx(70), 11080) << "the oldest that this runtime takes";
  EXPECT_EQ(oldestDriverForPtx(78), 11080);
  EXPECT_EQ(oldestDriverForPtx(80), 12000);
  EXPECT_EQ(oldestDriverForPtx(86), 12070) << "12.6 has 8.5";
  EXPECT_EQ(oldestDriverForPtx(88), 12090);
  EXPECT_EQ(oldestDriverForPtx(90), 13000);
  EXPECT_EQ(oldestDriverForPtx(99), 0) << "it is not known yet";
}

TEST_F(CudaDriver, FindsDamagedCode) {
  package::Kernel kernel = forCuda(layerNorm("forward"));
  package::Writer writer({});
  kernel.norm = writer.addNorm("layer_norm", "hash", "text");
  kernel.blob = writer.addBlob(ptxOf(forCuda(layerNorm("backward"))), "ptx", "sm_90");
  writer.addKernel(kernel);
  const host::Package package = open(writer);
  EXPECT_EQ(refusal([&] { Plan(package, kProblem, host::onCuda()); }),
            "DATA_LOSS: blob 0 of the package in memory (ptx, sm_90) is damaged: it has no entry "
            "'layer_norm_forward'");
  std::string bytes = cudaPackage({forCuda(layerNorm("forward"))}).bytes();
  bytes[bytes.find(".address_size")] = ',';
  const host::Package altered(host::Context(fakeDriver()), bytes.data(), bytes.size());
  EXPECT_EQ(refusal([&] { Plan(altered, kProblem, host::onCuda()); }),
            "DATA_LOSS: the package in memory is damaged: the hash of blob 0 (ptx, sm_90) is wrong");
}

TEST_F(CudaDriver, MayHaveTooFewRegistersForABlock) {
  package::Kernel kernel = forCuda(layerNorm("forward"));
  kernel.phases[0].launch->threads = 1024;
  const host::Package package = open(kernel);
  fake_cuda_set_max_threads_per_block(768);
  EXPECT_EQ(
      refusal([&] { Plan(package, kProblem, host::onCuda()); }),
      "FAILED_PRECONDITION: 'layer_norm_forward' is launched with 1024 threads a block; its registers leave "
      "room for 768 on cuda:0");
}

TEST_F(CudaDriver, FailsAnyStepOfExecute) {
  const host::Package package = open(forCuda(layerNorm("backward")));
  const Plan plan(package, "layer_norm:backward@f32[*x*]", host::onCuda());
  const CudaLayerNorm norm;
  const Stream stream;
  Call call = norm.backward();
  call.stream = stream.get();
  const auto failing = [&](const char* function, int nth, CUresult result) {
    fake_cuda_fail(function, nth, result, FAKE_CUDA_ONCE);
    return refusal([&] { plan(call); });
  };
  EXPECT_EQ(
      failing("cuCtxPushCurrent_v2", 1, CUDA_ERROR_UNKNOWN),
      "FAILED_PRECONDITION: making the context of cuda:0 current failed: CUDA_ERROR_UNKNOWN, unknown error");
  EXPECT_EQ(
      failing("cuStreamGetCtx", 1, CUDA_ERROR_INVALID_HANDLE),
      "FAILED_PRECONDITION: asking the stream for its context failed: CUDA_ERROR_INVALID_HANDLE, invalid "
      "resource handle");
  EXPECT_EQ(failing("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
            "ABORTED: launching phase 0 ('layer_norm_backward') on cuda:0 failed: "
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, too many resources requested for launch");
  EXPECT_EQ(
      failing("cuLaunchKernel", 2, CUDA_ERROR_UNKNOWN),
      "ABORTED: launching phase 1 ('layer_norm_finish') on cuda:0 failed: CUDA_ERROR_UNKNOWN, unknown error");
  EXPECT_EQ(failing("cuStreamGetCtx", 1, CUDA_ERROR_NOT_SUPPORTED), "accepted") << "the driver cannot tell";
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  EXPECT_EQ(current, nullptr) << "the caller's context is back after every failure";
}

TEST_F(CudaDriver, LosesTheContextWithAKernelThatFails) {
  const host::Package package = open(forCuda(layerNorm("forward")));
  const Plan plan(package, kProblem, host::onCuda());
  const CudaLayerNorm norm;
  fake_cuda_set_launcher([](void*, const fake_cuda_launch*) { return int(CUDA_ERROR_ILLEGAL_ADDRESS); },
                         nullptr);
  const Current current;
  EXPECT_EQ(refusal([&] { plan(norm.forward()); }), "accepted") << "nothing has waited for it";
  EXPECT_EQ(
      refusal([&] { plan(norm.forward()); }),
      "FAILED_PRECONDITION: making the context of cuda:0 current failed: CUDA_ERROR_ILLEGAL_ADDRESS, an "
      "illegal memory access was encountered; an earlier kernel failed and the device's context is lost; "
      "only "
      "a new process gets another");
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(CudaDriver, ErrorsMayStick) {
  const host::Package package = open(forCuda(layerNorm("forward")));
  const Plan plan(package, kProblem, host::onCuda());
  const CudaLayerNorm norm;
  const Current current;
  fake_cuda_fail("cuLaunchKernel", 1, CUDA_ERROR_LAUNCH_FAILED, FAKE_CUDA_STICKY);
  EXPECT_EQ(
      refusal([&] { plan(norm.forward()); }),
      "ABORTED: launching phase 0 ('layer_norm_forward') on cuda:0 failed: CUDA_ERROR_LAUNCH_FAILED, "
      "unspecified launch failure; an earlier kernel failed and the device's context is lost; only a new "
      "process gets another");
  EXPECT_TRUE(refusal([&] {
                Plan(package, kProblem, host::onCuda());
              }).find("the device's context is lost") != std::string::npos);
}

TEST_F(CudaDriver, FreesAllThatPlansHeld) {
  {
    const host::Package package =
        open(cudaPackage({forCuda(layerNorm("forward")), forCuda(powerNorm("forward"))}));
    const Plan first(package, kProblem, host::onCuda());
    const Plan second(package, kProblem, host::onCuda());
    EXPECT_EQ(fake_cuda_call_count("cuModuleLoadDataEx"), 1u) << "plans of one kernel share its code";
    const Plan other(package, "power_norm:forward@f32[*x*]", host::onCuda());
    const State state(other, 8);
    EXPECT_EQ(fake_cuda_live_objects(), 3u) << "two modules and the primary context";
    EXPECT_EQ(fake_cuda_live_allocations(), 1u);
  }
  EXPECT_EQ(fake_cuda_live_objects(), 0u);
  EXPECT_EQ(fake_cuda_live_allocations(), 0u);
}

}  // namespace
}  // namespace normc::test
