#include "codegen/Pipelines.h"

#include "codegen/Manifest.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "codegen/lower/Transcendentals.h"
#include "codegen/targets/cpu/Entry.h"
#include "codegen/targets/cpu/Object.h"
#include "codegen/targets/cuda/FusePhases.h"
#include "codegen/targets/cuda/LowerToGpu.h"
#include "codegen/targets/cuda/Meeting.h"
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/Ptxas.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace mlir;

namespace normc::codegen {

StringRef loopsToLlvmPipeline() {
  return "canonicalize,cse,"
         "convert-scf-to-cf,"
         "convert-vector-to-llvm{reassociate-fp-reductions=1},"
         "convert-math-to-llvm,"
         "convert-arith-to-llvm,"
         "finalize-memref-to-llvm,"
         "convert-cf-to-llvm,"
         "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},"
         "reconcile-unrealized-casts";
}

namespace {

/// One compilation: a context, a module, and the steps that every target has.
class Compilation {
 public:
  explicit Compilation(const Problem& problem)
      : problem_(problem), context_(dialects(), MLIRContext::Threading::DISABLED),
        module_(ModuleOp::create(UnknownLoc::get(&context_))) {
    context_.loadAllAvailableDialects();
    context_.getDiagEngine().registerHandler([this](mlir::Diagnostic& d) { diagnostics_ += d.str() + "\n"; });
  }

  llvm::Error plan(Strategy strategy, StringRef symbol, int64_t vector = 0) {
    auto kernel = planKernel(*module_, problem_, strategy, symbol, vector);
    if (!kernel) return kernel.takeError();
    kernel_ = *kernel;
    return llvm::Error::success();
  }

  /// For a reader: without repeated constants and views.
  llvm::Error tidy() { return run("cse", "tidying the loops"); }

  KernelOp kernel() { return kernel_; }
  std::string text() {
    std::string text;
    llvm::raw_string_ostream(text) << *module_;
    return text;
  }

 protected:
  static DialectRegistry dialects() {
    static std::once_flag once;
    std::call_once(once, [] { registerAllPasses(); });
    DialectRegistry registry;
    registry.insert<NormDialect, arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                    memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
    cuda::registerDialects(registry);
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    return registry;
  }
  llvm::Error run(StringRef pipeline, StringRef step) {
    PassManager passes(&context_);
    passes.enableVerifier(false);  // the result is verified, not what each pass hands to the next
    if (failed(parsePassPipeline(pipeline, passes))) return fault("the pass pipeline");
    return failed(passes.run(*module_)) || failed(verify(*module_)) ? fault(step) : llvm::Error::success();
  }
  llvm::Error fault(StringRef step) {
    return llvm::createStringError(step.str() + " failed for " + problem_.text() + "; this is a fault of normc\n" +
                                   diagnostics_);
  }

  const Problem& problem_;
  MLIRContext context_;
  llvm::LLVMContext llvm_;
  OwningOpRef<ModuleOp> module_;
  KernelOp kernel_;
  std::string diagnostics_;
};

class CpuCompilation : public Compilation {
 public:
  CpuCompilation(const Problem& problem, const cpu::Schedule& schedule, const cpu::Isa& isa)
      : Compilation(problem), schedule_(schedule), isa_(isa) {}

  llvm::Error plan(StringRef symbol) {
    if (auto reason = cpu::whyIllegal(problem_, schedule_, isa_))
      return llvm::createStringError(problem_.text() + " for " + isa_.name.str() + ": " + *reason);
    if (auto error = Compilation::plan(schedule_.strategy, symbol, schedule_.vector)) return error;
    kernel_.setScheduleAttr(schedule_.attribute(&context_));
    if (schedule_.stream) {
      SmallVector<Attribute> numbers(kernel_.getNumbers().begin(), kernel_.getNumbers().end());
      for (StringRef number : {largeNumber(), streamNumber()}) numbers.push_back(StringAttr::get(&context_, number));
      kernel_.setNumbersAttr(ArrayAttr::get(&context_, numbers));
    }
    return llvm::Error::success();
  }

  llvm::Error loops() {
    entry_.emplace(kernel_);
    lowerToLoops(*module_, {.roundsBF16 = isa_.roundsBF16, .wholeBF16 = isa_.masks16 ? isa_.vectorBytes / 2 : 0});
    expandTranscendentals(*module_);
    if (failed(verify(*module_))) return fault("lowering to loops");
    return llvm::Error::success();
  }

  llvm::Expected<std::unique_ptr<llvm::Module>> llvmIr() {
    if (auto error = run(loopsToLlvmPipeline(), "lowering to LLVM")) return error;
    cpu::addEntryPoints(*module_, *entry_);
    return cpu::optimizedLlvm(*module_, isa_, llvm_);
  }

 private:
  const cpu::Schedule& schedule_;
  const cpu::Isa& isa_;
  std::optional<cpu::EntryPoints> entry_;
};

class CudaCompilation : public Compilation {
 public:
  CudaCompilation(const Problem& problem, const cuda::Schedule& schedule, const cuda::Arch& arch)
      : Compilation(problem), schedule_(schedule), arch_(arch) {}

  llvm::Error plan(StringRef symbol) {
    if (auto error = Compilation::plan(schedule_.strategy, symbol)) return error;
    if (auto reason = cuda::whyIllegal(cuda::formOf(kernel_), schedule_, arch_))
      return llvm::createStringError(problem_.text() + " for " + arch_.name + ": " + *reason);
    cuda::fusePhases(kernel_, schedule_);
    cuda::addMeeting(kernel_, schedule_);
    return llvm::Error::success();
  }

  llvm::Error threads() {
    cuda::lowerToGpu(kernel_, schedule_, arch_);
    expandTranscendentals(*module_);
    if (failed(verify(*module_))) return fault("lowering to threads");
    return llvm::Error::success();
  }

  llvm::Expected<std::unique_ptr<llvm::Module>> llvmIr() {
    cuda::useIntrinsics(*module_);
    if (auto error = run(cuda::gpuToLlvmPipeline(), "lowering to NVVM")) return error;
    return cuda::optimizedLlvm(*module_->getOps<gpu::GPUModuleOp>().begin(), arch_, llvm_);
  }

 private:
  const cuda::Schedule& schedule_;
  const cuda::Arch& arch_;
};

package::Resources resourcesOf(const cuda::Arch& arch, const package::Launch& launch, const cuda::Resources& r) {
  const int64_t blocks = cuda::residentBlocks(arch, launch.threads, launch.shared, r);
  const int64_t clusters = launch.cluster > 1 ? cuda::residentClusters(arch, launch.cluster, blocks) : 0;
  return {r.registers, r.sharedBytes, r.spillBytes, blocks, clusters};
}

std::string textOf(const llvm::Module& ir) {
  std::string text;
  llvm::raw_string_ostream out(text);
  ir.print(out, nullptr);
  return text;
}

}  // namespace

llvm::Expected<Stage> findStage(StringRef name, llvm::ArrayRef<std::string> legal) {
  auto stage = llvm::StringSwitch<std::optional<Stage>>(name)
                   .Case("sweeps", Stage::Sweeps)
                   .Case("loops", Stage::Loops)
                   .Case("gpu", Stage::Gpu)
                   .Case("llvm", Stage::Llvm)
                   .Case("asm", Stage::Assembly)
                   .Case("ptx", Stage::Ptx)
                   .Case("sass", Stage::Sass)
                   .Default(std::nullopt);
  if (stage && llvm::is_contained(legal, name)) return *stage;
  return llvm::createStringError("no stage '" + name.str() + "'; legal: " + llvm::join(legal, ", "));
}

//===-- CPU -----------------------------------------------------------------------===//

llvm::Expected<std::string> emitStage(const Problem& problem, const cpu::Schedule& schedule, const cpu::Isa& isa,
                                      Stage stage) {
  CpuCompilation c(problem, schedule, isa);
  if (auto error = c.plan("kernel")) return error;
  if (stage == Stage::Sweeps) return c.text();
  if (auto error = c.loops()) return error;
  if (stage == Stage::Loops) {
    if (auto error = c.tidy()) return error;
    return c.text();
  }
  auto ir = c.llvmIr();
  if (!ir) return ir.takeError();
  return stage == Stage::Llvm ? textOf(**ir) : cpu::machineCode(**ir, isa, cpu::Emit::Assembly);
}

llvm::Expected<CompiledKernel> compileKernel(const Problem& problem, const cpu::Schedule& schedule,
                                             const cpu::Isa& isa, StringRef symbol) {
  CpuCompilation c(problem, schedule, isa);
  if (auto error = c.plan(symbol)) return error;
  CompiledKernel kernel;
  kernel.manifest = kernelManifest(problem, schedule, isa, c.kernel());
  if (auto error = c.loops()) return error;
  auto ir = c.llvmIr();
  if (!ir) return ir.takeError();
  auto object = cpu::machineCode(**ir, isa, cpu::Emit::Object);
  if (!object) return object.takeError();
  kernel.object = std::move(*object);
  return kernel;
}

//===-- CUDA ----------------------------------------------------------------------===//

llvm::Expected<std::string> emitStage(const Problem& problem, const cuda::Schedule& schedule, const cuda::Arch& arch,
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
  return cuda::disassemble(assembled->cubin);
}

llvm::Expected<CompiledKernel> compileKernel(const Problem& problem, const cuda::Schedule& schedule,
                                             const cuda::Arch& arch, StringRef symbol, const CudaOptions& options) {
  CudaCompilation c(problem, schedule, arch);
  if (auto error = c.plan(symbol)) return error;
  CompiledKernel kernel;
  kernel.manifest = kernelManifest(problem, schedule, arch, c.kernel());
  if (auto error = c.threads()) return error;
  auto ir = c.llvmIr();
  if (!ir) return ir.takeError();
  if (options.observe) options.observe(**ir);
  auto ptx = cuda::ptx(**ir, arch);
  if (!ptx) return ptx.takeError();
  kernel.ptx = std::move(*ptx);
  if (!options.assemble) return kernel;
  auto assembled = cuda::assemble(kernel.ptx, arch);
  if (!assembled) {  // the driver can do without
    kernel.note = llvm::toString(assembled.takeError());
    return kernel;
  }
  kernel.cubin = std::move(assembled->cubin);
  for (package::Phase& phase : kernel.manifest.phases)
    if (auto found = assembled->resources.find(phase.symbol); found != assembled->resources.end())
      phase.resources = resourcesOf(arch, *phase.launch, found->second);
  return kernel;
}

}  // namespace normc::codegen
