#include "codegen/emulator/Program.h"

#include <mutex>

#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/ptx/Translate.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"

namespace normc::emulator {

using namespace llvm;

/// Moves registers out of memory, and little more: a launch is short.
static Error optimise(Module& module) {
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
  if (Error error = passes.parsePassPipeline(
          pipeline, "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg)"))
    return error;
  pipeline.run(module, modules);
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

Expected<Program> Program::compile(StringRef text) {
  auto source = ptx::parse(text);
  if (!source) return source.takeError();
  auto jit = newJit();
  if (!jit) return jit.takeError();
  auto state = std::make_shared<State>();
  auto context = std::make_unique<LLVMContext>();
  auto module = std::make_unique<Module>("ptx", *context);
  module->setTargetTriple((*jit)->getTargetTriple());
  module->setDataLayout((*jit)->getDataLayout());
  if (Error error = ptx::translate(*source, *module, *state)) return error;
  std::string problem;
  raw_string_ostream out(problem);
  if (verifyModule(*module, &out))
    return createStringError("the emulator has made a module that is not valid: " + problem);
  if (Error error = optimise(*module)) return error;
  if (Error error = (*jit)->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))))
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
