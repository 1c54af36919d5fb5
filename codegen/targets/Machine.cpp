#include "codegen/targets/Machine.h"

#include <mutex>

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"

namespace normc::codegen {

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const MachineName& name) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  });
  std::string error;
  llvm::Triple triple(name.triple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return llvm::createStringError("this LLVM has no target for " + name.triple + ": " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, name.cpu, name.features, options, llvm::Reloc::PIC_, std::nullopt, name.level));
}

void layOut(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

namespace {

/// A pass builder with the analyses of one module.
struct Optimizer {
  explicit Optimizer(llvm::TargetMachine& machine) : builder(&machine), library(machine.getTargetTriple()) {
    library.disableAllFunctions();
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::TargetLibraryInfoImpl library;
};

}  // namespace

void optimize(llvm::Module& module, llvm::TargetMachine& machine, llvm::StringRef passes) {
  Optimizer o(machine);
  llvm::ModulePassManager pipeline;
  o.builder.invokePipelineStartEPCallbacks(pipeline, llvm::OptimizationLevel::O3);
  llvm::cantFail(o.builder.parsePassPipeline(pipeline, passes));
  pipeline.run(module, o.modules);
}

namespace {

/// Passes of code generation, without those of one name.
class PassesWithout : public llvm::legacy::PassManager {
 public:
  explicit PassesWithout(llvm::StringRef name) : name_(name) {}
  void add(llvm::Pass* pass) override {
    if (pass->getPassName() == name_)
      delete pass;
    else
      PassManager::add(pass);
  }

 private:
  llvm::StringRef name_;
};

}  // namespace

llvm::Expected<std::string> emit(llvm::Module& module, llvm::TargetMachine& machine,
                                 llvm::CodeGenFileType kind, llvm::StringRef without) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  PassesWithout passes(without);
  if (machine.addPassesToEmitFile(passes, out, nullptr, kind))
    return llvm::createStringError("LLVM cannot emit code for " + machine.getTargetCPU().str());
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

}  // namespace normc::codegen
