// CUDA packages on the command line: compile, inspect, check on the emulator, --device.
#include <filesystem>

#include "autotune/gate/CudaDevice.h"
#include "tests/cli/Command.h"

namespace normc::cli {
namespace {

constexpr const char* kLayer = "layer_norm:forward@f32[*x64]";

/// True if this machine has a GPU; then the messages of a machine without one cannot be tested.
bool hasGpu() {
  try {
    gate::CudaDevice device;
    return true;
  } catch (const gate::CudaError&) {
    return false;
  }
}

class Cuda : public CommandTest {
 protected:
  struct Told {
    Outcome check, inspect;
  };
  /// Returns the output for rows that more blocks share than every device has in a cluster. It takes seconds,
  /// so it is made once.
  const Told& longRows() const {
    static const Told told = [&] {
      package("r.npk", {"rms_norm:infer@f32[*x163840]", "--target", "sm_90"});
      return Told{normc({"check", "r.npk", "--emulate"}), normc({"inspect", "r.npk", "--json"})};
    }();
    return told;
  }
};

//===-- compile, inspect -------------------------------------------------------------------===//

struct WrongCuda {
  std::vector<std::string> arguments;
  std::string text;
};
class CudaRefuses : public CommandTest, public testing::WithParamInterface<WrongCuda> {};

TEST_P(CudaRefuses, AndWritesNothing) {
  std::vector<std::string> arguments{"compile", "-o", "x.npk"};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const Outcome o = normc(arguments);
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, GetParam().text));
  EXPECT_EQ(o.out, "");
  EXPECT_TRUE(files().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaRefuses,
    testing::Values(
        WrongCuda{
            {kLayer, "--target", "sm_90", "--ptxas", "/none"},
            "--ptxas is '/none': no program that can be run\n  hint: e.g. --ptxas /usr/local/cuda/bin/ptxas"},
        WrongCuda{
            {kLayer, "--target", "sm_90", "--ptxas", "/bin/true"},
            "--ptxas is '/bin/true': it is not ptxas: --version does not name a release of the CUDA Toolkit"},
        WrongCuda{{kLayer, "--target", "sm_90", "--ptxas", "/none", "--ptx-only"},
                  "--ptx-only and --ptxas exclude each other\n  hint: cubins are made by ptxas"},
        WrongCuda{{kLayer, "--target", "x86-64-v3", "--ptxas", "/none"},
                  "--ptxas is for GPUs, and no --target is one\n  hint: add a GPU, e.g. --target sm_90, or "
                  "leave it "
                  "out"},
        WrongCuda{{kLayer, "--target", "sm_90", "--ptxas", "/none", "--emit", "sass"},
                  "--ptxas is for packages\n  hint: --emit sass takes the ptxas that is found first: put "
                  "another one "
                  "first on the PATH"},
        WrongCuda{{kLayer, "--target", "sm_70"}, "sm_70 is older than sm_80, the first with bf16"},
        WrongCuda{{kLayer, "--target", "sm_999"}, "this LLVM does not know sm_999"},
        WrongCuda{{kLayer, "--target", "sm_x"}, "no architecture 'sm_x'; legal: sm_80, sm_90, sm_100"},
        WrongCuda{{kLayer, "--target", "cuda"}, "--target is 'cuda'; it must be host, "},
        WrongCuda{{"layer_norm:forward@f64[*x64]", "--target", "sm_90"},
                  "layer_norm:forward@f64[*x64] cannot be compiled for sm_90: statistics in f64"},
        WrongCuda{{kLayer, "--target", "sm_90", "--schedule",
                   "resident,threads=32,team=8,vector=4,tile=1,rows=1,chunks=264,blocks=0"},
                  "team * vector * tile = 32 elements do not hold a run of 64"},
        WrongCuda{{kLayer, "--target", "sm_90", "--schedule",
                   "resident,threads=2048,team=16,vector=4,tile=1,rows=1,chunks=264,blocks=0"},
                  "threads = 2048; legal: a multiple of 32 up to 1024"},
        WrongCuda{{kLayer, "--target", "sm_90", "--schedule",
                   "resident,threads=64,team=16,vector=8,tile=1,rows=1,chunks=264,blocks=0"},
                  "vector = 8; legal: a power of two up to 4, the 16 bytes of one access on sm_90"},
        WrongCuda{{kLayer, "--target", "sm_90", "--emit", "asm"},
                  "--emit is 'asm'; for sm_90 it must be sweeps, gpu, llvm, ptx or sass\n"
                  "  hint: asm is a stage of CPUs: leave --target out\n"},
        WrongCuda{
            {kLayer, "--target", "sm_90", "--print-after", "norm-to-loops"},
            "--print-after is 'norm-to-loops'; it must be norm-fuse-phases, norm-grid-barrier, norm-to-gpu"},
        WrongCuda{{kLayer, "--target", "host", "--emit", "ptx"}, "it must be sweeps, loops, llvm or asm"}));

TEST_F(Cuda, EmitsItsStagesAsText) {
  const auto emit = [&](const char* stage) {
    const Outcome o = normc({"compile", "--emit", stage, kLayer, "--target", "sm_90"});
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_TRUE(contains(emit("sweeps"), "norm.sweep"));
  EXPECT_TRUE(contains(emit("gpu"), "gpu.func"));
  EXPECT_TRUE(contains(emit("ptx"), ".target sm_90"));
}

TEST_F(Cuda, InspectShowsTargetAndCode) {
  package("l.npk", {kLayer, "--target", "sm_90,sm_80"});
  const Outcome o = normc({"inspect", "l.npk"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "l.npk: 2 kernels of 1 norm, "));
  EXPECT_TRUE(contains(o.out, "sm_90     ptx"));
  EXPECT_TRUE(contains(o.out, "sm_80     ptx"));
  EXPECT_TRUE(contains(o.out, "mlir: resident,threads="));
  const auto kernel = normc({"inspect", "l.npk", "--json"}).json()["manifest"]["kernels"][0];
  EXPECT_EQ(kernel["device"], "cuda");
  // ptxas need not be here; where it was, its findings are shown.
  const bool assembled = kernel.contains("cubin") && !kernel["cubin"].is_null();
  EXPECT_EQ(o.out.find("registers") != o.out.npos, assembled);
  EXPECT_EQ(o.out.find(", ptxas 1") != o.out.npos, assembled)
      << "its release, behind those of normc and LLVM";

  package("p.npk", {kLayer, "--target", "sm_90", "--ptx-only"});
  const auto ptx = normc({"inspect", "p.npk", "--json"}).json()["manifest"]["kernels"][0];
  EXPECT_TRUE(ptx.contains("blob"));
  EXPECT_TRUE(!ptx.contains("cubin") || ptx["cubin"].is_null()) << ptx.dump();
}

//===-- check ------------------------------------------------------------------------------===//

TEST_F(Cuda, CheckSaysHowToRunThem) {
  package("l.npk", {kLayer, "--target", "host,sm_90"});
  const Outcome o = normc({"check", "l.npk"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(
      contains(o.out, "not run: for a CUDA device; --emulate runs them here, --device cuda:0 on a GPU"));
  EXPECT_TRUE(contains(o.out, "1 right, 0 wrong, 1 not run"));
}

TEST_F(Cuda, CheckOfAPackageForGpusAloneChecksNothing) {
  package("l.npk", {kLayer, "--target", "sm_90"});
  const Outcome o = normc({"check", "l.npk"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.out, "not run: for a CUDA device; --emulate runs them here"));
  EXPECT_TRUE(contains(o.err, "no kernel of l.npk was run here, so nothing is checked"));
}

TEST_F(Cuda, CheckRefusesADeviceThatIsNone) {
  package("l.npk", {kLayer});
  for (const char* device : {"cuda:x", "cuda", "cuda:", "cuda:-1", "cuda:0x", "cuda:99999999999", "gpu"}) {
    const Outcome o = normc({"check", "l.npk", "--device", device});
    EXPECT_EQ(o.code, 2);
    EXPECT_TRUE(contains(o.err, "normc: error: --device is '" + std::string(device) +
                                    "'; it must be cpu or cuda:N, e.g. cuda:0"));
  }
}

TEST_F(Cuda, EveryVerbWithADeviceSaysThatThereIsNoDriver) {
  if (hasGpu()) GTEST_SKIP() << "this machine has a GPU";
  package("l.npk", {kLayer, "--target", "sm_90"});
  for (const char* verb : {"check", "run", "explain"}) {
    const Outcome o = normc({verb, "l.npk", kLayer, "--device", "cuda:0", "--cuda-library", "libnone.so.1"});
    EXPECT_EQ(o.code, 3) << verb;
    EXPECT_TRUE(contains(o.err, "no CUDA driver: cannot load libnone.so.1"));
    EXPECT_TRUE(contains(o.err,
                         "install the NVIDIA driver, or ask for a plan on the CPU\n"
                         "  hint: leave --device out to run on the CPU\n"));
    EXPECT_NE(normc({verb, "l.npk", kLayer, "--device", "cuda:0"}).code, 0) << verb;
  }
}

#ifdef NORMC_FAKE_CUDA

/// Options that open a device sm_90 which runs nothing.
std::vector<std::string> withFake(std::vector<std::string> arguments, const std::string& device = "cuda:0") {
  arguments.insert(arguments.end(), {"--device", device, "--cuda-library", NORMC_FAKE_CUDA});
  return arguments;
}

TEST_F(Cuda, EmulatesAKernelOfEachKind) {
  // BatchNorm has a streamed one, its fallback with less shared memory, and a resident one for few rows.
  package("n.npk", {kLayer, "batch_norm:backward@f32[*x24]", "--target", "sm_90"});
  const Outcome o = normc({"check", "n.npk", "--emulate"});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_TRUE(contains(o.out, "right, emulated"));
  EXPECT_TRUE(contains(o.out, "4 right, 0 wrong, 0 not run"));
}

TEST_F(Cuda, EmulatesKernelsWhoseBlocksWaitForEachOther) {
  // Such a launch passes its parameters one by one: how many a cubin takes is read from it.
  package("g.npk", {"layer_norm:forward@f32[*x2048]", "--target", "sm_90", "--schedule",
                    "resident,threads=64,team=64,vector=4,tile=4,chunks=2,blocks=1,grid=2"});
  const Outcome o = normc({"check", "g.npk", "--emulate"});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_TRUE(contains(o.out, "1 right, 0 wrong, 0 not run"));
}

TEST_F(Cuda, EmulatesBesideKernelsOfTheProcessorAndForAnyArchitecture) {
  package("r.npk", {"rms_norm:infer@bf16[*x40]", "--target", "host,sm_80,sm_100"});
  const auto result = normc({"check", "r.npk", "--emulate", "--json"}).json();
  EXPECT_EQ(result["right"], 3);
  EXPECT_EQ(result["kernels"][0]["emulated"], false);
  EXPECT_EQ(result["kernels"][1]["emulated"], true);
  EXPECT_EQ(result["kernels"][2]["emulated"], true);
  EXPECT_EQ(result["kernels"][1]["trials"], result["kernels"][2]["trials"]);
  EXPECT_EQ(2 * int(result["kernels"][1]["trials"]), int(result["kernels"][0]["trials"]))
      << "small and large calls of a processor";
  EXPECT_EQ(result["kernels"][1]["shortened"], 0);
}

TEST_F(Cuda, EmulatesThePtxOfAPackageWithoutCubins) {
  package("r.npk", {"rms_norm:infer@f32[*x40]", "--target", "sm_90"});
  const auto kernel = normc({"inspect", "r.npk", "--json"}).json()["manifest"]["kernels"][0];
  if (kernel.contains("cubin") && !kernel["cubin"].is_null()) {
    const std::string cubin = "\"cubin\":" + kernel["cubin"].dump();
    rewriteManifest("r.npk", cubin, "\"cubim\":" + kernel["cubin"].dump());
  }
  const Outcome o = normc({"check", "r.npk", "--emulate"});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_TRUE(contains(o.out, "1 right, 0 wrong, 0 not run"));
}

TEST_F(Cuda, EmulatesAFallbackThatTheRuntimeTakesOnSmallerDevicesAlone) {
  const Outcome& o = longRows().check;
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_TRUE(contains(o.out, "2 right, 0 wrong, 0 not run"));
  const auto kernels = longRows().inspect.json()["manifest"]["kernels"];
  EXPECT_EQ(kernels[0]["origin"], "default");
  EXPECT_EQ(kernels[1]["origin"], "fallback");
}

TEST_F(Cuda, EmulationShortensWhatWouldTakeLong) {
  EXPECT_TRUE(contains(longRows().check.out, " on the emulator had fewer rows than elsewhere"));
}

TEST_F(Cuda, EmulationFindsAWrongKernel) {
  package("l.npk", {kLayer, "--target", "sm_90"});
  rewriteManifest("l.npk", R"("name":"epsilon","value":1e-05)", R"("name":"epsilon","value":1e-02)");
  const Outcome o = normc({"check", "l.npk", "--emulate"});
  EXPECT_EQ(o.code, 1);
  EXPECT_TRUE(contains(o.out, "WRONG in "));
  EXPECT_TRUE(contains(o.out, "kernel 0: layer_norm:forward@f32[*x64] on 33x64 "));
}

/// The schedule in the manifest is a remark: what runs is the PTX.
TEST_F(Cuda, EmulationRunsTheCodeOfThePackageAndCompilesNothing) {
  package("l.npk", {kLayer, "--target", "sm_90"});
  const auto schedule =
      normc({"inspect", "l.npk", "--json"}).json()["manifest"]["kernels"][0]["schedule"].get<std::string>();
  rewriteManifest("l.npk", schedule, std::string(schedule.size(), '?'));
  const Outcome o = normc({"check", "l.npk", "--emulate"});
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

TEST_F(Cuda, EmulationOfAPackageForCpusIsRefused) {
  package("l.npk", {kLayer});
  const Outcome o = normc({"check", "l.npk", "--emulate"});
  EXPECT_EQ(o.code, 3);
  EXPECT_EQ(o.err,
            "normc: error: l.npk has no kernel for a CUDA device here, so there is nothing to emulate\n"
            "  hint: leave out --emulate, or compile with --target sm_90\n");
}

TEST_F(Cuda, EmulationAndADeviceExcludeEachOther) {
  const Outcome o = normc({"check", "l.npk", "--emulate", "--device", "cuda:1"});
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "--emulate and --device cuda:1 exclude each other"));
}

TEST_F(Cuda, EmulationSaysThatItsDriverIsMissing) {
  namespace fs = std::filesystem;
  package("l.npk", {kLayer, "--target", "sm_90"});
  fs::create_directory(fs::path(folder_) / "bin");
  fs::copy_file(NORMC_PROGRAM, fs::path(folder_) / "bin" / "normc");
  const Outcome o = program(folder_ + "/bin/normc", {"check", "l.npk", "--emulate"});
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "--emulate needs libnormc_fake_cuda.so, which is not in " + folder_ + "/lib"));
}

TEST_F(Cuda, CheckOnADeviceSaysWhatCannotRunThere) {
  package("l.npk", {kLayer, "--target", "host,sm_100"});
  const Outcome o = normc(withFake({"check", "l.npk"}));
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.out, "not run: for a CPU; check it without --device"));
  EXPECT_TRUE(contains(o.out, "not run: needs sm_100 or newer; cuda:0 is sm_90"));
}

TEST_F(Cuda, CheckOnADeviceTriesItsKernels) {
  package("l.npk", {kLayer, "--target", "sm_90"});
  const Outcome o = normc(withFake({"check", "l.npk"}));  // it runs nothing, so nothing comes out right
  EXPECT_EQ(o.code, 1);
  EXPECT_TRUE(contains(o.out, "WRONG in "));
}

TEST_F(Cuda, CheckSaysThatThereIsNoSuchDevice) {
  package("l.npk", {kLayer, "--target", "sm_90"});
  const Outcome o = normc(withFake({"check", "l.npk"}, "cuda:7"));
  EXPECT_EQ(o.code, 2);
  EXPECT_TRUE(contains(o.err, "there is no device cuda:7; this machine has 1 CUDA device, number 0"));
}

TEST_F(Cuda, ExplainShowsTheRung) {
  package("l.npk", {kLayer, "--target", "sm_80"});
  const Outcome o = normc(withFake({"explain", "l.npk", kLayer}));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(contains(o.out, "PTX for sm_80, compiled by the driver"));
  EXPECT_EQ(normc([&] {
              auto arguments = withFake({"explain", "l.npk", kLayer});
              arguments.push_back("--json");
              return arguments;
            }())
                .json()["device"],
            "cuda:0");
}

TEST_F(Cuda, ExplainSaysWhyADeviceIsNotServed) {
  package("l.npk", {kLayer, "--target", "sm_100"});
  const Outcome o = normc(withFake({"explain", "l.npk", kLayer}));
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(contains(o.err, "needs sm_100 or newer; "));
  EXPECT_TRUE(contains(o.err, "compile the package with --target sm_90"));
}

#endif

}  // namespace
}  // namespace normc::cli
