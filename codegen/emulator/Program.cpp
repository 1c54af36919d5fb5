#include "codegen/emulator/Program.h"

#include <mutex>

#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Rewrite.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"

namespace normc::emulator {

using namespace llvm;

//===-- Passes ----------------------------------------------------------------------------===//

/// Runs a pipeline, by its text or as built, with analyses of its own.
template <typename Build>
static Error runPasses(Module& module, Build build) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  PassBuilder passes;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(sccs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, sccs, modules);
  ModulePassManager pipeline;
  if (Error error = build(passes, pipeline)) return error;
  pipeline.run(module, modules);
  return Error::success();
}

/// Inlines all code into entry functions and makes masked accesses single ones, as NVPTX does.
static Error flatten(Module& module) {
  for (Function& f : module) {
    if (f.isDeclaration() || f.getCallingConv() == CallingConv::PTX_Kernel) continue;
    f.removeFnAttr(Attribute::NoInline);
    f.removeFnAttr(Attribute::OptimizeNone);
    f.addFnAttr(Attribute::AlwaysInline);
    f.setLinkage(GlobalValue::InternalLinkage);
  }
  return runPasses(module, [](PassBuilder&, ModulePassManager& pipeline) {
    pipeline.addPass(AlwaysInlinerPass(/*InsertLifetime=*/false));
    pipeline.addPass(createModuleToFunctionPassAdaptor(ScalarizeMaskedMemIntrinPass()));
    pipeline.addPass(GlobalDCEPass());
    return Error::success();
  });
}

//===-- Compiling -------------------------------------------------------------------------===//

/// Returns a copy in its own context, so that programs share none.
static Expected<std::unique_ptr<Module>> copyOf(const Module& module, LLVMContext& context) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream out(bytes);
  WriteBitcodeToFile(module, out);
  return parseBitcodeFile(MemoryBufferRef(StringRef(bytes.data(), bytes.size()), module.getName()), context);
}

static Error checkModule(const Module& module) {
  const Triple& triple = module.getTargetTriple();
  if (!triple.str().empty() && triple.getArch() != Triple::nvptx64)
    return createStringError("a module for '" + triple.str() + "' is not one for nvptx64");
  for (unsigned space : {Space::Generic, Space::Global, Space::Shared, Space::Distributed})
    if (unsigned bits = module.getDataLayout().getPointerSizeInBits(space); bits != 64)
      return createStringError("pointers to address space " + Twine(space) + " have " + Twine(bits) +
                               " bits; only 64 can be emulated: leave out nvptx-short-ptr");
  std::string problem;
  raw_string_ostream out(problem);
  if (verifyModule(module, &out)) return createStringError("the module is not valid: " + problem);
  return Error::success();
}

static Expected<std::unique_ptr<orc::LLJIT>> newJit() {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  auto machine = orc::JITTargetMachineBuilder::detectHost();
  if (!machine) return machine.takeError();
  machine->setCodeGenOptLevel(CodeGenOptLevel::Less);
  machine->getOptions().AllowFPOpFusion = FPOpFusion::Standard;
  auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*machine)).create();
  if (!jit) return jit.takeError();

  orc::SymbolMap symbols;
  for (auto hooks : {accessHooks(), strongHooks(), warpHooks(), barrierHooks(), mbarrierHooks(), copyHooks(),
                     addressHooks(), mathHooks()})
    for (const Hook& hook : hooks)
      symbols[(*jit)->mangleAndIntern(hook.name)] = {orc::ExecutorAddr::fromPtr(hook.address),
                                                     JITSymbolFlags::Exported};
  auto& library = (*jit)->getMainJITDylib();
  if (Error error = library.define(orc::absoluteSymbols(std::move(symbols)))) return error;
  auto process =
      orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process) return process.takeError();
  library.addGenerator(std::move(*process));
  return std::move(*jit);
}

Expected<Program> Program::compile(const Module& source) {
  if (Error error = checkModule(source)) return error;
  auto state = std::make_shared<State>();
  auto context = std::make_unique<LLVMContext>();
  auto module = copyOf(source, *context);
  if (!module) return module.takeError();
  if (Error error = flatten(**module)) return error;
  if (Error error = rewrite(**module, *state)) return error;

  auto jit = newJit();
  if (!jit) return jit.takeError();
  (*module)->setTargetTriple((*jit)->getTargetTriple());
  (*module)->setDataLayout((*jit)->getDataLayout());
  std::string problem;
  raw_string_ostream out(problem);
  if (verifyModule(**module, &out))
    return createStringError("the emulator has made a module that is not valid: " + problem);
  Error optimised = runPasses(**module, [](PassBuilder& passes, ModulePassManager& pipeline) {
    return passes.parsePassPipeline(pipeline,
                                    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg)");
  });
  if (optimised) return optimised;
  if (Error error = (*jit)->addIRModule(orc::ThreadSafeModule(std::move(*module), std::move(context))))
    return error;
  for (Entry& entry : state->entries) {
    auto code = (*jit)->lookup("emu." + entry.name);
    if (!code) return code.takeError();
    entry.code = code->toPtr<Code>();
  }
  for (Variable& variable : state->variables) {
    auto address = (*jit)->lookup(variable.name);
    if (!address) return address.takeError();
    variable.address = address->toPtr<std::byte*>();
  }
  state->jit = std::move(*jit);
  return Program(state);
}

//===-- Asking ------------------------------------------------------------------------------===//

const Entry* Program::State::find(const std::string& function) const {
  for (const Entry& entry : entries)
    if (entry.name == function) return &entry;
  return nullptr;
}

std::vector<std::string> Program::functions() const {
  std::vector<std::string> names;
  for (const Entry& entry : state_->entries) names.push_back(entry.name);
  return names;
}

size_t Program::parameters(const std::string& function) const {
  const Entry* entry = state_->find(function);
  return entry ? entry->parameters : 0;
}

}  // namespace normc::emulator
