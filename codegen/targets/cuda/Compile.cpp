#include "codegen/targets/cuda/Compile.h"

#include "codegen/Compilation.h"
#include "codegen/lower/Expand.h"
#include "codegen/targets/cuda/Approximations.h"
#include "codegen/targets/cuda/FusePhases.h"
#include "codegen/targets/cuda/GridBarrier.h"
#include "codegen/targets/cuda/Intrinsics.h"
#include "codegen/targets/cuda/Legality.h"
#include "codegen/targets/cuda/LowerToGpu.h"
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/Ptxas.h"
#include "codegen/targets/cuda/Traits.h"
#include "llvm/IR/Module.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {
namespace {

class CudaCompilation : public Compilation {
 public:
  CudaCompilation(const Problem& problem, const Schedule& schedule, const Arch& arch)
      : Compilation(problem, registerDialects), schedule_(schedule), arch_(arch) {}

  llvm::Error plan(StringRef symbol) {
    if (auto error = Compilation::plan(schedule_.strategy, symbol)) return error;
    if (auto reason = cuda::whyIllegal(traitsOf(kernel_), schedule_, arch_))
      return llvm::createStringError(problem_.text() + " for " + arch_.name + ": " + *reason);
    // From sweeps to sweeps; the manifest describes the result.
    return run("planning", fusePhases(schedule_), addGridBarrier(schedule_));
  }

  llvm::Error threads() {
    return run("lowering to threads", normToGpu(schedule_, arch_), expandDivision(), expandRsqrt(),
               expandLog(), approximateFunctions(), expandExp(), expandAbs());
  }

  llvm::Error llvmDialect() { return run("lowering to NVVM", mathToIntrinsics(), gpuToLlvmPipeline()); }

  llvm::Expected<std::unique_ptr<llvm::Module>> llvmIr() {
    if (auto error = llvmDialect()) return error;
    return cuda::optimizedLlvm(*module_->getOps<gpu::GPUModuleOp>().begin(), arch_, llvm_);
  }

 private:
  const Schedule& schedule_;
  const Arch& arch_;
};

package::Resources resourcesOf(const Arch& arch, const package::Launch& launch, const Resources& r) {
  const int64_t blocks = residentBlocks(arch, launch.threads, launch.shared, r);
  const int64_t clusters = launch.cluster > 1 ? residentClusters(arch, launch.cluster, blocks) : 0;
  return {r.registers, r.sharedBytes, r.spillBytes, blocks, clusters};
}

}  // namespace

llvm::Expected<std::string> emitStage(const Problem& problem, const Schedule& schedule, const Arch& arch,
                                      Stage stage) {
  CudaCompilation c(problem, schedule, arch);
  if (auto error = c.plan("kernel")) return error;
  if (stage == Stage::Sweeps) return c.text();
  if (auto error = c.threads()) return error;
  if (stage == Stage::Gpu) {
    if (auto error = c.tidy()) return error;
    return c.text();
  }
  auto ir = c.llvmIr();
  if (!ir) return ir.takeError();
  if (stage == Stage::Llvm) return textOf(**ir);
  auto ptx = cuda::ptx(**ir, arch);
  if (!ptx || stage == Stage::Ptx) return ptx;
  auto assembled = cuda::assemble(*ptx, arch);
  if (!assembled) return assembled.takeError();
  return disassemble(assembled->cubin);
}

llvm::Expected<std::vector<PassText>> passTexts(const Problem& problem, const Schedule& schedule,
                                                const Arch& arch, llvm::ArrayRef<std::string> shown) {
  CudaCompilation c(problem, schedule, arch);
  c.show(shown);
  if (auto error = c.plan("kernel")) return error;
  if (auto error = c.threads()) return error;
  if (auto error = c.llvmDialect()) return error;
  return c.passes();
}

llvm::Expected<CompiledKernel> compileKernel(const Problem& problem, const Schedule& schedule,
                                             const Arch& arch, StringRef symbol, const CubinOptions& cubin) {
  CudaCompilation c(problem, schedule, arch);
  if (auto error = c.plan(symbol)) return error;
  CompiledKernel kernel;
  kernel.manifest = kernelManifest(problem, schedule, arch, c.kernel());
  if (auto error = c.threads()) return error;
  auto ir = c.llvmIr();
  if (!ir) return ir.takeError();
  auto ptx = cuda::ptx(**ir, arch);
  if (!ptx) return ptx.takeError();
  kernel.ptx = std::move(*ptx);
  if (!cubin.make) return kernel;
  auto assembled = cuda::assemble(kernel.ptx, arch, cubin.assemblers);
  if (!assembled) {  // the driver can do without
    kernel.note = llvm::toString(assembled.takeError());
    return kernel;
  }
  kernel.cubin = std::move(assembled->cubin);
  kernel.assembled = std::move(assembled->release);
  for (package::Phase& phase : kernel.manifest.phases)
    if (auto found = assembled->resources.find(phase.symbol); found != assembled->resources.end())
      phase.resources = resourcesOf(arch, *phase.launch, found->second);
  return kernel;
}

}  // namespace normc::codegen::cuda
