#include "codegen/targets/cpu/Object.h"

#include <mutex>

#include "codegen/targets/TemporaryFile.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"

namespace normc::codegen::cpu {

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const Isa& isa) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  });
  std::string error;
  llvm::Triple triple(isa.triple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return llvm::createStringError("this LLVM has no target for " + isa.name.str() + ": " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, isa.cpu, isa.features, options, llvm::Reloc::PIC_, std::nullopt,
                                  llvm::CodeGenOptLevel::Aggressive));
}

llvm::Expected<std::unique_ptr<llvm::Module>> optimizedLlvm(mlir::ModuleOp module, const Isa& isa,
                                                            llvm::LLVMContext& context) {
  auto machine = machineFor(isa);
  if (!machine) return machine.takeError();
  std::unique_ptr<llvm::Module> ir = mlir::translateModuleToLLVMIR(module, context, "normc");
  if (!ir) return llvm::createStringError("translation to LLVM IR failed; this is a fault of normc");
  ir->setTargetTriple(llvm::Triple(isa.triple));
  ir->setDataLayout((*machine)->createDataLayout());
  for (llvm::Function& f : *ir) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", isa.cpu);
    f.addFnAttr("prefer-vector-width", std::to_string(8 * isa.vectorBytes));
    f.addFnAttr(llvm::Attribute::NoUnwind);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(machine->get());
  // Kernels are freestanding: no loop may become a call of memset.
  llvm::TargetLibraryInfoImpl library{llvm::Triple(isa.triple)};
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(sccs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, sccs, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*ir, modules);
  return ir;
}

llvm::Expected<std::string> machineCode(llvm::Module& ir, const Isa& isa, Emit emit) {
  auto machine = machineFor(isa);
  if (!machine) return machine.takeError();
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  auto kind = emit == Emit::Object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  if ((*machine)->addPassesToEmitFile(passes, out, nullptr, kind))
    return llvm::createStringError("LLVM cannot emit code for " + isa.name.str());
  passes.run(ir);
  return std::string(bytes.data(), bytes.size());
}

//===-- Linking -----------------------------------------------------------------===//

llvm::Expected<std::string> linkShared(llvm::ArrayRef<std::string> objects, const Isa& isa) {
  static constexpr llvm::StringRef names[] = {"ld.lld-22", "ld.lld"};
  std::string linker;
  for (llvm::StringRef name : names)
    if (auto found = llvm::sys::findProgramByName(name); found && linker.empty()) linker = *found;
  if (linker.empty()) return llvm::createStringError("no linker: neither ld.lld-22 nor ld.lld is on the PATH; install lld-22");

  std::vector<TemporaryFile> files;
  for (const std::string& object : objects) {
    auto file = TemporaryFile::create("o", object);
    if (!file) return file.takeError();
    files.push_back(std::move(*file));
  }
  auto output = TemporaryFile::create("so", "");
  if (!output) return output.takeError();
  auto log = TemporaryFile::create("log", "");
  if (!log) return log.takeError();
  llvm::SmallVector<llvm::StringRef> command{linker,     "-shared",       "--no-undefined",    "-z",
                                             "noexecstack", "--build-id=none", "--strip-all", "--hash-style=gnu",
                                             "-o",       output->path()};
  for (const TemporaryFile& file : files) command.push_back(file.path());
  std::string error;
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(), log->path()};
  int status = llvm::sys::ExecuteAndWait(linker, command, std::nullopt, redirects, 60, 0, &error);
  if (status != 0)
    return llvm::createStringError("linking " + isa.name.str() + " kernels failed: " + error + log->read());
  return output->read();
}

}  // namespace normc::codegen::cpu
