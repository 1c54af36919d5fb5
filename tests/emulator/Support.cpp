#include "tests/emulator/Support.h"

#include <bit>
#include <cstring>

#include "llvm/AsmParser/Parser.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/SourceMgr.h"

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

static llvm::Expected<Program> compile(const std::string& ir) {
  llvm::LLVMContext context;
  return Program::compile(*parseKernel(ir, context));
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
  Launch launch{"k", shape.grid, shape.block, shape.cluster, shape.sharedBytes, shape.cooperative, values};
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
