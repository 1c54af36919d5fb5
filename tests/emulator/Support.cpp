#include "tests/emulator/Support.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codegen/targets/Machine.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Target/TargetMachine.h"

namespace normc::emulator {

static const char* const kTarget =
    "target triple = \"nvptx64-nvidia-cuda\"\n"
    "target datalayout = \"e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64\"\n";

std::unique_ptr<llvm::Module> parseKernel(const std::string& ir, llvm::LLVMContext& context) {
  llvm::SMDiagnostic problem;
  auto module = llvm::parseAssemblyString(kTarget + ir, problem, context);
  if (!module) {
    problem.print("a test's kernel", llvm::errs());
    llvm::report_fatal_error("a test's kernel is not valid");
  }
  return module;
}

std::string ptxOf(llvm::Module& module) {
  const auto machine = llvm::cantFail(
      codegen::machineFor({"nvptx64-nvidia-cuda", "sm_90", "+ptx88", llvm::CodeGenOptLevel::None}));
  return llvm::cantFail(codegen::emit(module, *machine, llvm::CodeGenFileType::AssemblyFile));
}

std::string ptxEntry(const std::string& parameters, const std::string& instructions) {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(";
  const auto count = std::ranges::count(parameters, ',') + 1;
  for (int i = 0; i < count; ++i)
    text += (i ? ", .param .u64 k_param_" : ".param .u64 k_param_") + std::to_string(i);
  text += ")\n{\n";
  for (const char* registers : {".pred %p<10>", ".b16 %rs<10>", ".b32 %r<10>", ".b64 %rd<10>"})
    text += std::string("\t.reg ") + registers + ";\n";
  return text + "\t.local .align 8 .b8 depot[8];\n\n" + instructions + "\n\tret;\n}\n";
}

Program programOfPtx(const std::string& ptx) { return llvm::cantFail(Program::compile(ptx)); }

std::string reasonAgainstPtx(const std::string& ptx) {
  auto program = Program::compile(ptx);
  return program ? "" : llvm::toString(program.takeError());
}

static llvm::Expected<Program> compile(const std::string& ir) {
  llvm::LLVMContext context;
  return Program::compile(ptxOf(*parseKernel(ir, context)));
}

Program programOf(const std::string& ir) { return llvm::cantFail(compile(ir)); }

std::string reasonAgainst(const std::string& ir) {
  auto program = compile(ir);
  return program ? "" : llvm::toString(program.takeError());
}

static llvm::Expected<Report> launch(const Program& program, const Shape& shape, Memory& memory,
                                     const std::vector<const void*>& words, const Options& options) {
  std::vector<uint64_t> values;
  for (const void* word : words) values.push_back(reinterpret_cast<uint64_t>(word));
  Launch launch{
      "k",   shape.grid, shape.block, shape.cluster, shape.sharedBytes, shape.cooperative, shape.mostShared,
      values};
  return program.run(launch, memory, options);
}

Report run(const Program& program, const Shape& shape, Memory& memory, const std::vector<const void*>& words,
           const Options& options) {
  return llvm::cantFail(launch(program, shape, memory, words, options));
}

Report run(const std::string& ir, const Shape& shape, Memory& memory, const std::vector<const void*>& words,
           const Options& options) {
  return run(programOf(ir), shape, memory, words, options);
}

std::string refusal(const Program& program, const Shape& shape, Memory& memory,
                    const std::vector<const void*>& words) {
  auto report = launch(program, shape, memory, words, {});
  return report ? "" : llvm::toString(report.takeError());
}

const void* word(uint64_t value) { return reinterpret_cast<const void*>(value); }
const void* word(double value) { return word(std::bit_cast<uint64_t>(value)); }

}  // namespace normc::emulator
