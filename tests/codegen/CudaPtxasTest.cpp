// Kernels without a working ptxas: PTX, and a note that says why.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/targets/cuda/Defaults.h"
#include "codegen/targets/cuda/Ptxas.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

/// A program called ptxas before all others on the PATH, while the object lives.
class Ptxas {
 public:
  explicit Ptxas(const std::string& script)
      : path_(getenv("PATH")),
        folder_(std::filesystem::temp_directory_path() / ("normc-ptxas-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "ptxas") << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(folder_ / "ptxas", std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
  }
  ~Ptxas() {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

 private:
  std::string path_;
  std::filesystem::path folder_;
};

CompiledKernel layerNorm(const char* text = "layer_norm:forward@f32[*x256]") {
  const Problem problem = problemOf(text);
  const cuda::Arch arch = llvm::cantFail(cuda::findArch("sm_90"));
  return llvm::cantFail(
      compileKernel(problem, cuda::defaultSchedule(problem, arch, Strategy::Resident), arch, "k"));
}

TEST(CudaPtxas, ThatIsTooOldLeavesPtxAndSaysSo) {
  const Ptxas old("echo \"ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'\" >&2; exit 1");
  const CompiledKernel kernel = layerNorm();
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
  const CompiledKernel kernel = layerNorm();
  EXPECT_EQ(kernel.note, "");
  EXPECT_EQ(kernel.cubin, "cubin\n");
  ASSERT_TRUE(kernel.manifest.phases[0].resources);
  EXPECT_EQ(kernel.manifest.phases[0].resources->registers, 40);
  EXPECT_EQ(kernel.manifest.phases[0].resources->spills, 28);
  EXPECT_EQ(kernel.manifest.phases[0].resources->shared, 64);
  EXPECT_EQ(kernel.manifest.phases[0].resources->clusters, 0) << "blocks are launched singly";
}

TEST(CudaPtxas, CountsWholeClustersOfAGpc) {
  const Ptxas talks(R"(for last; do :; done; echo cubin > "$last"
echo "ptxas info    : Compiling entry function 'k_apply' for 'sm_90'"
echo "ptxas info    : Used 128 registers, used 1 barriers, 64 bytes smem")");
  const CompiledKernel kernel = layerNorm("layer_norm:forward@bf16[*x122880]");
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
