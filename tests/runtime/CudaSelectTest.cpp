// The kernel that a plan for a CUDA device gets, its form, and the error if there is none.
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

const char* const kProblem = "layer_norm:forward@f32[*x*]";

package::Kernel withCubin(package::Kernel kernel) {
  kernel.cubin = 0;  // cudaPackage makes one
  return kernel;
}

package::Kernel kernelFor(const std::string& isa) { return forCuda(layerNorm("forward"), isa); }

class CudaSelect : public CudaTest {
 protected:
  static size_t chosen(const host::Package& package, normc_request request = host::onCuda()) {
    return Plan(package, kProblem, request).kernel();
  }
  static void capability(int number) { restart({{number / 10, number % 10, 0, 0}}); }
  static std::string describe(const host::Package& package, normc_request request = host::onCuda()) {
    return Plan(package, kProblem, request).describe();
  }
};

TEST_F(CudaSelect, ClimbsFromTheExactCubinToPtx) {
  const host::Package package =
      open(cudaPackage({withCubin(kernelFor("sm_80")), withCubin(kernelFor("sm_90")), kernelFor("sm_75"),
                        withCubin(kernelFor("sm_86")), kernelFor("sm_100")}));
  const auto at = [&](int number) {
    capability(number);
    return chosen(package);
  };
  EXPECT_EQ(at(80), 0u) << "its cubin";
  EXPECT_EQ(at(86), 3u) << "its cubin";
  EXPECT_EQ(at(89), 3u) << "the nearest cubin of the same major number";
  EXPECT_EQ(at(90), 1u);
  EXPECT_EQ(at(75), 2u) << "PTX for exactly this one";
  EXPECT_EQ(at(100), 4u) << "PTX, since no cubin is of major number 10";
  EXPECT_EQ(at(120), 4u) << "the newest PTX";
}

TEST_F(CudaSelect, PrefersAnyCubinToAnyPtx) {
  const host::Package package = open(cudaPackage({kernelFor("sm_86"), withCubin(kernelFor("sm_80"))}));
  capability(86);
  EXPECT_EQ(chosen(package), 1u);
  EXPECT_TRUE(
      has(describe(package), "kernel 1 has a cubin for the nearest architecture of the same major number"));
}

TEST_F(CudaSelect, NamesTheRung) {
  const host::Package package = open(cudaPackage({withCubin(kernelFor("sm_80"))}));
  const auto code = [&](int number) {
    capability(number);
    const std::string text = describe(package);
    const size_t begin = text.find("code: ");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(code(80), "code: cubin for sm_80, exactly this device's");
  EXPECT_EQ(code(89), "code: cubin for sm_80, of the same major number as this device's");
  EXPECT_EQ(code(90), "code: PTX for sm_80, compiled by the driver");
}

TEST_F(CudaSelect, DescribesDeviceAndPlan) {
  const host::Package package = open(cudaPackage({withCubin(kernelFor("sm_90")), kernelFor("sm_80")}));
  fake_cuda_set_driver_version(12080);
  EXPECT_EQ(describe(package),
            "layer_norm:forward@f32[*x*]\n"
            "kernel: 0 of the package in memory: layer_norm:forward@f32[*x*], sm_90, by hand\n"
            "schedule: scalar (default)\n"
            "chosen because: of those that serve the request here, it has a cubin for exactly this device\n"
            "device: cuda:0, Fake GPU (sm_90), sm_90, driver for CUDA 12.8\n"
            "code: cubin for sm_90, exactly this device's\n"
            "number: epsilon = 1e-05\n"
            "rejected:\n"
            "  kernel 1 (layer_norm:forward@f32[*x*], sm_80, hand): kernel 0 has a cubin for exactly this "
            "device\n");
}

TEST_F(CudaSelect, PrefersExactFeaturesOnOneRung) {
  const host::Package package = open(
      cudaPackage({kernelFor("sm_90"), forCuda(layerNorm("forward", 8)), withCubin(kernelFor("sm_80"))}));
  EXPECT_EQ(Plan(package, "layer_norm:forward@f32[*x8]", host::onCuda()).kernel(), 1u);
}

TEST_F(CudaSelect, HonoursTheCap) {
  const host::Package package = open(cudaPackage({withCubin(kernelFor("sm_90")), kernelFor("sm_80")}));
  normc_request request = host::onCuda();
  request.isa_cap = "sm_80";
  EXPECT_EQ(chosen(package, request), 1u);
  EXPECT_TRUE(has(describe(package, request), "needs sm_90, newer than the cap sm_80"));
  request.isa_cap = "sm_75";
  EXPECT_TRUE(
      refusal([&] { chosen(package, request); }).ends_with("\ncompile the package with --target sm_75"));
  request.isa_cap = "x86-64-v3";
  EXPECT_EQ(
      refusal([&] { chosen(package, request); }),
      "INVALID_ARGUMENT: request.isa_cap is 'x86-64-v3'; on a CUDA device it must be sm_NN, e.g. sm_90");
}

TEST_F(CudaSelect, TakesCodeWithASuffixOnlyWhereItRuns) {
  const host::Package package = open(
      cudaPackage({withCubin(kernelFor("sm_90")), withCubin(kernelFor("sm_90a")), kernelFor("sm_100f")}));
  EXPECT_EQ(chosen(package), 1u) << "sm_90a uses more of sm_90";
  capability(103);
  EXPECT_EQ(chosen(package), 2u) << "sm_100f is for the family of 10.0";
  EXPECT_TRUE(has(describe(package), "needs sm_90a; cuda:0 is sm_103"));
  capability(120);
  EXPECT_EQ(chosen(package), 0u) << "PTX of sm_90 is for all that is newer";
}

TEST_F(CudaSelect, SaysWhatWouldHelpWhereNothingRuns) {
  const host::Package package = open(
      cudaPackage({withCubin(kernelFor("sm_90")), withCubin(kernelFor("sm_100a")), layerNorm("forward")}));
  capability(75);
  EXPECT_EQ(refusal([&] { chosen(package); }),
            "FAILED_PRECONDITION: no kernel of the package serves layer_norm:forward@f32[*x*] here:\n"
            "  kernel 0 (layer_norm:forward@f32[*x*], sm_90, hand): needs sm_90 or newer; cuda:0 is sm_75\n"
            "  kernel 1 (layer_norm:forward@f32[*x*], sm_100a, hand): needs sm_100a; cuda:0 is sm_75\n"
            "  kernel 2 (layer_norm:forward@f32[*x*], " +
                hostIsa() +
                ", hand): is for device 'cpu'; this plan is for 'cuda'\n"
                "compile the package with --target sm_75");
  const host::Package other = open(kernelFor("sm_75"));
  EXPECT_EQ(refusal([&] { Plan(other, "layer_norm:forward@bf16[*x*]", host::onCuda()); }),
            "NOT_FOUND: no kernel of the package serves layer_norm:forward@bf16[*x*] here:\n"
            "  kernel 0 (layer_norm:forward@f32[*x*], sm_75, hand): is for data f32, not bf16\n"
            "compile the package with 'layer_norm:forward@bf16[*x*]' as well");
}

TEST_F(CudaSelect, RefusesKernelsThatTheDeviceHasNoRoomFor) {
  package::Kernel large = kernelFor("sm_80"), small = kernelFor("sm_80");
  large.phases[0].launch->shared = 150000;
  const host::Package package = open(cudaPackage({large, small}));
  capability(86);
  EXPECT_EQ(chosen(package), 1u);
  EXPECT_TRUE(has(describe(package), "needs 150000 bytes of shared memory a block; cuda:0 has 101376"));
  capability(80);
  EXPECT_EQ(chosen(package), 0u);

  package::Kernel clusters = kernelFor("sm_80");
  clusters.phases[0].launch->cluster = 2;
  const host::Package clustered = open(clusters);
  EXPECT_TRUE(has(refusal([&] { chosen(clustered); }), "launches clusters of blocks; sm_80 has none"));
}

/// In clusters of so many blocks, with room for their own shared memory.
package::Kernel clustered(package::Kernel kernel, int64_t blocks) {
  kernel.phases[0].launch->cluster = blocks;
  kernel.phases[0].launch->shared = 60000;
  return kernel;
}

TEST_F(CudaSelect, TakesTheNextKernelWhereTheDeviceHasNoRoomForTheBest) {
  const package::Kernel exact = clustered(forCuda(layerNorm("forward", 8)), 16);
  const host::Package package = open(cudaPackage({exact, kernelFor("sm_90"), kernelFor("sm_80")}));
  const auto plan = [&] { return Plan(package, "layer_norm:forward@f32[*x8]", host::onCuda()).describe(); };
  EXPECT_TRUE(has(plan(), "kernel: 0 of the package in memory: layer_norm:forward@f32[*x8], sm_90"));
  fake_cuda_set_largest_cluster(8);
  const std::string text = plan();
  EXPECT_TRUE(has(text, "kernel: 1 of the package in memory: layer_norm:forward@f32[*x*], sm_90")) << text;
  EXPECT_TRUE(has(text, "chosen because: the better one cannot be loaded here\n")) << text;
  EXPECT_TRUE(
      has(text,
          "rejected:\n"
          "  kernel 0 (layer_norm:forward@f32[*x8], sm_90, hand): 'layer_norm_forward' is launched in "
          "clusters of 16 blocks, each of 64 threads and 60000 bytes of dynamic shared memory; cuda:0 has "
          "room for none: compile for it with a smaller 'cluster', or for any number of features\n"
          "  kernel 2 (layer_norm:forward@f32[*x*], sm_80, hand): kernel 1 is PTX for the newest "
          "architecture that the device takes\n"))
      << text;
}

TEST_F(CudaSelect, RunsTheNextKernelAsIfThereHadBeenNoOther) {
  package::Kernel exact = forCuda(layerNorm("forward", 8));
  exact.phases[0].symbol = "better", exact.scalars.push_back({"other", 7});
  const host::Package package = open(cudaPackage({exact, kernelFor("sm_90")}));
  fake_cuda_fail("cuModuleLoadDataEx", 1, cuda::CUDA_ERROR_INVALID_PTX, FAKE_CUDA_ONCE);
  const Plan plan(package, "layer_norm:forward@f32[*x8]", host::onCuda());
  EXPECT_FALSE(has(plan.describe(), "number: other"));
  plan(CudaLayerNorm().forward());
  EXPECT_EQ(launchedFunctions(), "layer_norm_forward");
}

TEST_F(CudaSelect, TakesTheNextKernelForWhatIsSaidOfTheCodeAlone) {
  using namespace cuda;
  package::Kernel few = kernelFor("sm_90");
  few.limits.rowsMax = 64, few.phases[0].symbol = "few_rows";
  package::Kernel exact = forCuda(layerNorm("forward", 8));
  exact.cubin = 0;
  const host::Package narrow = open(cudaPackage({kernelFor("sm_90"), few})),
                      wide = open(cudaPackage({exact, kernelFor("sm_90")}));
  const auto plan = [](const host::Package& package, const char* problem, const char* function, int nth,
                       CUresult result) {
    fake_cuda_reset();
    cuInit(0);
    fake_cuda_fail(function, nth, result, FAKE_CUDA_ONCE);
    return refusal([&] { Plan(package, problem, host::onCuda()); });
  };
  for (const CUresult result :
       {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_PTX,
        CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        CUDA_ERROR_JIT_COMPILATION_DISABLED, CUDA_ERROR_INVALID_SOURCE, CUDA_ERROR_NOT_SUPPORTED,
        CUDA_ERROR_INVALID_CLUSTER_SIZE}) {
    EXPECT_EQ(plan(wide, "layer_norm:forward@f32[*x8]", "cuModuleLoadDataEx", 1, result), "accepted")
        << result;
    EXPECT_EQ(plan(narrow, kProblem, "cuModuleLoadDataEx", 2, result), "accepted") << result;
    EXPECT_EQ(plan(narrow, kProblem, "cuFuncLoad", 1, result).substr(0, 19), "FAILED_PRECONDITION")
        << "there is no other";
  }
  for (const CUresult result :
       {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_UNKNOWN}) {
    const char* name = nullptr;
    cuGetErrorName(result, &name);
    const auto startsWith = [&](const std::string& text, const std::string& doing) {
      const std::string begin = "FAILED_PRECONDITION: " + doing + " failed: " + name + ",";
      EXPECT_EQ(text.substr(0, begin.size()), begin);
    };
    startsWith(plan(wide, "layer_norm:forward@f32[*x8]", "cuModuleLoadDataEx", 1, result),
               "loading blob 1 of the package in memory (cubin, sm_90) on cuda:0");
    startsWith(plan(wide, "layer_norm:forward@f32[*x8]", "cuFuncLoad", 1, result),
               "loading 'layer_norm_forward'");
    startsWith(plan(narrow, kProblem, "cuModuleLoadDataEx", 2, result),
               "loading blob 1 of the package in memory (ptx, sm_90) on cuda:0");
  }
}

TEST_F(CudaSelect, DoesWithoutAKernelForFewRowsThatTheDeviceHasNoRoomFor) {
  package::Kernel few = clustered(kernelFor("sm_90"), 16);
  few.limits.rowsMax = 64, few.phases[0].symbol = "few_rows";
  const host::Package package = open(cudaPackage({kernelFor("sm_90"), few}));
  const Plan both(package, kProblem, host::onCuda());
  CudaLayerNorm norm;
  both(norm.forward());
  EXPECT_EQ(launchedFunctions(), "few_rows");
  fake_cuda_set_largest_cluster(8);
  const Plan one(package, kProblem, host::onCuda());
  one(norm.forward());
  EXPECT_EQ(launchedFunctions(), "few_rows layer_norm_forward");
  EXPECT_TRUE(has(
      one.describe(),
      "rejected:\n"
      "  kernel 1 (layer_norm:forward@f32[*x*], sm_90, hand): serves 0 to 64 rows; 'few_rows' is launched in "
      "clusters of 16 blocks"))
      << one.describe();
}

TEST_F(CudaSelect, SaysOfEachKernelWhyItCannotBeLoaded) {
  const host::Package package =
      open(cudaPackage({clustered(forCuda(layerNorm("forward", 8)), 16), clustered(kernelFor("sm_90"), 4)}));
  const auto plan = [&] {
    return refusal([&] { Plan(package, "layer_norm:forward@f32[*x8]", host::onCuda()); });
  };
  fake_cuda_set_largest_cluster(2);
  EXPECT_EQ(plan(),
            "FAILED_PRECONDITION: no kernel of the package that serves layer_norm:forward@f32[*x8] can be "
            "loaded here:\n"
            "  kernel 0 (layer_norm:forward@f32[*x8], sm_90, hand): 'layer_norm_forward' is launched in "
            "clusters of 16 blocks, "
            "each of 64 threads and 60000 bytes of dynamic shared memory; cuda:0 has room for none: compile "
            "for it with a "
            "smaller 'cluster', or for any number of features\n"
            "  kernel 1 (layer_norm:forward@f32[*x*], sm_90, hand): 'layer_norm_forward' is launched in "
            "clusters of 4 blocks, "
            "each of 64 threads and 60000 bytes of dynamic shared memory; cuda:0 has room for none: compile "
            "for it with a "
            "smaller 'cluster', or for any number of features");
  fake_cuda_set_largest_cluster(16);
  fake_cuda_fail("cuOccupancyMaxActiveClusters", 1, cuda::CUDA_ERROR_OUT_OF_MEMORY, FAKE_CUDA_ONCE);
  EXPECT_TRUE(plan().starts_with(
      "RESOURCE_EXHAUSTED: asking how many clusters of 'layer_norm_forward' the device holds failed: "))
      << "another kernel would need memory, too";
}

TEST_F(CudaSelect, KeepsProcessorAndDeviceApart) {
  if (hostIsa() == "none") GTEST_SKIP() << "this processor has no set that packages know";
  const host::Package package = open(cudaPackage({kernelFor("sm_90"), layerNorm("forward")}));
  EXPECT_EQ(chosen(package, {}), 1u);
  EXPECT_EQ(chosen(package), 0u);
  EXPECT_TRUE(has(Plan(package, kProblem).describe(), "is for device 'cuda'; this plan is for 'cpu'"));
  normc_request request = {};
  request.device_type = kDLCPU;
  EXPECT_EQ(chosen(package, request), 1u);
  request.device_id = 1;
  EXPECT_EQ(refusal([&] { chosen(package, request); }),
            "INVALID_ARGUMENT: request.device_id is 1; the CPU has no other number than 0");
  request.device_type = 7;
  EXPECT_EQ(refusal([&] { chosen(package, request); }),
            "INVALID_ARGUMENT: request.device_type is 7; it must be 0 or 1 (the CPU), or 2 (CUDA)");
  request = host::onCuda();
  request.steady = 2;
  EXPECT_EQ(refusal([&] { chosen(package, request); }),
            "INVALID_ARGUMENT: request.steady is 2; it must be 0 or 1");
  request.steady = 0;
  request.output_reuse = 3;
  EXPECT_EQ(refusal([&] { chosen(package, request); }),
            "INVALID_ARGUMENT: request.output_reuse is 3; it must be 0 (unknown), 1 (soon) or 2 (late)");
}

TEST_F(CudaSelect, RefusesDevicesThatAreNotThere) {
  const host::Package package = open(kernelFor("sm_90"));
  EXPECT_EQ(refusal([&] { chosen(package, host::onCuda(1)); }),
            "INVALID_ARGUMENT: there is no device cuda:1; this machine has 1 CUDA device, number 0");
  EXPECT_EQ(refusal([&] { chosen(package, host::onCuda(-1)); }),
            "INVALID_ARGUMENT: there is no device cuda:-1; this machine has 1 CUDA device, number 0");
  restart({{9, 0, 0, 0}, {8, 0, 0, 0}});
  EXPECT_EQ(refusal([&] { chosen(package, host::onCuda(2)); }),
            "INVALID_ARGUMENT: there is no device cuda:2; this machine has 2 CUDA devices, numbered from 0");
}

}  // namespace
}  // namespace normc::test
