// Kernels without a working ptxas: PTX, and a note that says why. With several: each takes the first that
// can.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/targets/cuda/Defaults.h"
#include "codegen/targets/cuda/Ptxas.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

/// A script called ptxas in a folder of its own, while the object lives.
class Script {
 public:
  explicit Script(const std::string& text) {
    llvm::SmallString<128> folder;
    llvm::cantFail(llvm::errorCodeToError(llvm::sys::fs::createUniqueDirectory("normc-ptxas", folder)));
    folder_ = folder.str();
    std::ofstream(program()) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }
  ~Script() { std::filesystem::remove_all(folder_); }
  std::string folder() const { return folder_; }
  std::string program() const { return folder_ + "/ptxas"; }

 private:
  std::string folder_;
};

/// The same before all others on the PATH.
class Ptxas {
 public:
  explicit Ptxas(const std::string& script) : path_(getenv("PATH")), script_(script) {
    setenv("PATH", (script_.folder() + ":" + path_).c_str(), 1);
  }
  ~Ptxas() { setenv("PATH", path_.c_str(), 1); }

 private:
  std::string path_;
  Script script_;
};

CompiledKernel kernelOf(const char* text = "layer_norm:forward@f32[*x256]", const CubinOptions& cubin = {},
                        const char* isa = "sm_90") {
  const Problem problem = problemOf(text);
  const cuda::Arch arch = llvm::cantFail(cuda::findArch(isa));
  return llvm::cantFail(compileKernel(
      problem, cuda::defaultSchedule(problem, arch, legalStrategies(problem).front()), arch, "k", cubin));
}

TEST(CudaPtxas, ThatIsTooOldLeavesPtxAndSaysSo) {
  const Ptxas old("echo \"ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'\" >&2; exit 1");
  const CompiledKernel kernel = kernelOf();
  EXPECT_FALSE(kernel.ptx.empty());
  EXPECT_TRUE(kernel.cubin.empty());
  EXPECT_EQ(
      kernel.note,
      "ptxas cannot assemble for sm_90: ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'");
  for (const package::Phase& phase : kernel.manifest.phases)
    EXPECT_FALSE(phase.resources) << "nothing has counted";
}

TEST(CudaPtxas, SaysWhatAnEntryTakes) {
  const Ptxas talks(R"(for last; do :; done; echo cubin > "$last"
echo "ptxas info    : Compiling entry function 'k_apply' for 'sm_90'"
echo "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads"
echo "ptxas info    : Used 40 registers, used 1 barriers, 64 bytes smem")");
  const CompiledKernel kernel = kernelOf();
  EXPECT_EQ(kernel.note, "");
  EXPECT_EQ(kernel.cubin, "cubin\n");
  ASSERT_TRUE(kernel.manifest.phases[0].resources);
  EXPECT_EQ(kernel.manifest.phases[0].resources->registers, 40);
  EXPECT_EQ(kernel.manifest.phases[0].resources->spills, 28);
  EXPECT_EQ(kernel.manifest.phases[0].resources->shared, 64);
  EXPECT_EQ(kernel.manifest.phases[0].resources->clusters, 0) << "blocks are launched singly";
}

TEST(CudaPtxas, OfSeveralTheFirstThatCanMakesTheCubin) {
  const Script old("echo \"ptxas fatal   : Value 'sm_90' is not defined\" >&2; exit 1"),
      newer("for last; do :; done; echo newer > \"$last\""),
      newest("for last; do :; done; echo newest > \"$last\"");
  CubinOptions cubin{
      .assemblers = {{old.program(), "11.0"}, {newer.program(), "12.4"}, {newest.program(), ""}}};
  const CompiledKernel kernel = kernelOf("layer_norm:forward@f32[*x256]", cubin);
  EXPECT_EQ(kernel.cubin, "newer\n");
  EXPECT_EQ(kernel.assembled, "12.4");
  EXPECT_EQ(kernel.note, "");

  cubin.assemblers = {{old.program(), "11.0"}, {old.program(), ""}};
  const CompiledKernel none = kernelOf("layer_norm:forward@f32[*x256]", cubin);
  EXPECT_EQ(none.cubin, "");
  EXPECT_EQ(none.assembled, "");
  EXPECT_EQ(none.note,
            "ptxas 11.0 cannot assemble for sm_90: ptxas fatal   : Value 'sm_90' is not defined; "
            "ptxas cannot assemble for sm_90: ptxas fatal   : Value 'sm_90' is not defined");
}

TEST(CudaPtxas, NamesItsRelease) {
  const Script ptxas(
      "echo 'ptxas: NVIDIA (R) Ptx optimizing assembler'\n"
      "echo 'Cuda compilation tools, release 12.4, V12.4.131'"),
      other(
          "echo 'nvcc: NVIDIA (R) Cuda compiler driver'\n"
          "echo 'Cuda compilation tools, release 12.4, V12.4.131'"),
      broken("echo no such library >&2; exit 1");
  const Assembler found = llvm::cantFail(cuda::assemblerAt(ptxas.program()));
  EXPECT_EQ(found.program, ptxas.program());
  EXPECT_EQ(found.release, "12.4");
  const auto why = [](const std::string& path) {
    auto assembler = cuda::assemblerAt(path);
    return assembler ? "" : llvm::toString(assembler.takeError());
  };
  EXPECT_EQ(why(ptxas.folder() + "/none"), "no program that can be run");
  EXPECT_EQ(why(other.program()), "it is not ptxas: --version does not name a release of the CUDA Toolkit");
  EXPECT_EQ(why(broken.program()), "it cannot tell its version: no such library");
}

/// The ABI in the ELF header of a cubin of CUDA 12, before sm_100 (docs/cuda.md, Cubins for older drivers).
constexpr char kAbiOfCuda12 = 7;

TEST(CudaPtxas, OfCuda12MakesCubinsForItsDrivers) {
  if (!std::filesystem::exists(NORMC_PTXAS_12_4))
    GTEST_SKIP() << "no " NORMC_PTXAS_12_4 ": scripts/setup --cuda-12 installs it";
  const CubinOptions cubin{.assemblers = {llvm::cantFail(cuda::assemblerAt(NORMC_PTXAS_12_4))}};
  for (const char* isa : {"sm_80", "sm_90"})
    for (const char* text : {"layer_norm:forward@bf16[*x4096]", "layer_norm:backward@bf16[*x4096]",
                             "rms_norm:forward@f32[*x1024]", "batch_norm:forward@f32[*x1024]",
                             "power_norm:backward@f32[*x1024]", "layer_norm:forward@bf16[*x65536]"}) {
      const CompiledKernel kernel = kernelOf(text, cubin, isa);
      EXPECT_EQ(kernel.note, "") << text << ", " << isa;
      EXPECT_EQ(kernel.assembled, "12.4");
      ASSERT_GT(kernel.cubin.size(), 64u) << text << ", " << isa;
      EXPECT_EQ(kernel.cubin[8], kAbiOfCuda12) << text << ", " << isa;
      for (const package::Phase& phase : kernel.manifest.phases) {
        ASSERT_TRUE(phase.resources) << text << ", " << isa;
        EXPECT_EQ(phase.resources->spills, 0) << text << ", " << isa << ", " << phase.symbol;
      }
    }
}

TEST(CudaPtxas, OfCuda12TakesNewerArchitecturesFromItsLastRelease) {
  if (!std::filesystem::exists(NORMC_PTXAS_12_4) || !std::filesystem::exists(NORMC_PTXAS_12_9))
    GTEST_SKIP() << "no " NORMC_PTXAS_12_4 " or " NORMC_PTXAS_12_9 ": scripts/setup --cuda-12 installs them";
  CubinOptions cubin;
  for (const char* program : {NORMC_PTXAS_12_4, NORMC_PTXAS_12_9})
    cubin.assemblers.push_back(llvm::cantFail(cuda::assemblerAt(program)));
  for (const char* text : {"layer_norm:forward@bf16[*x4096]", "layer_norm:backward@f32[*x1024]"}) {
    EXPECT_EQ(kernelOf(text, cubin, "sm_90").assembled, "12.4");
    EXPECT_EQ(kernelOf(text, cubin, "sm_100").assembled, "12.9");
  }
}

TEST(CudaPtxas, CountsWholeClustersOfAGpc) {
  const Ptxas talks(R"(for last; do :; done; echo cubin > "$last"
echo "ptxas info    : Compiling entry function 'k_apply' for 'sm_90'"
echo "ptxas info    : Used 128 registers, used 1 barriers, 64 bytes smem")");
  const CompiledKernel kernel = kernelOf("layer_norm:forward@bf16[*x122880]");
  const package::Phase& apply = kernel.manifest.phases[0];
  ASSERT_EQ(apply.launch->cluster, 16);
  ASSERT_EQ(apply.launch->threads, 256);
  EXPECT_EQ(apply.resources->blocks, 2) << "65536 registers";
  EXPECT_EQ(apply.resources->clusters, 2)
      << "36 blocks have room on 18 multiprocessors, 32 of them in whole clusters";
}

TEST(CudaOccupancy, CountsDynamicSharedMemory) {
  const cuda::Arch arch = llvm::cantFail(cuda::findArch("sm_80"));
  const cuda::Resources r{.registers = 32, .sharedBytes = 1024};
  EXPECT_EQ(cuda::residentBlocks(arch, 256, 0, r), 8);
  EXPECT_EQ(cuda::residentBlocks(arch, 256, 52 << 10, r), 3)
      << "54 KiB each of 164, one of which the system takes";
  EXPECT_EQ(cuda::residentBlocks(arch, 256, 164 << 10, r), 0);
}

}  // namespace
}  // namespace normc::codegen
