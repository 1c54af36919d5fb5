#include "tests/codegen/Support.h"

#include "codegen/lower/Expand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"

namespace normc::codegen {

static Problem checked(Result<Problem> problem) {
  if (problem) return *problem;
  ADD_FAILURE() << text(problem.errors());
  std::abort();
}

Problem problemOf(const std::string& text) { return checked(parseProblem(text, findNorm)); }

Problem problemOf(const std::string& norms, const std::string& rest) {
  auto specs = readNorms(norms, "test.norm");
  if (!specs) {
    ADD_FAILURE() << text(specs.errors());
    std::abort();
  }
  auto spec = specs->back();
  return checked(parseProblem(spec->name + rest, [&](std::string_view) { return Result(spec); }));
}

std::optional<Problem> problemOf(const BuiltinNorm& norm, const Wish& wish) {
  bool segmented = norm.spec->needsSegments();
  const int64_t block = norm.spec->isQuantizedPer(QuantizePer::Block) ? norm.spec->quantize->size : 1;
  std::string d = std::to_string(int64_t(llvm::alignTo(wish.features, block))), options;
  std::string shape = wish.channelsFirst ? "*x" + d + "x*" : (segmented ? "*x*x" : "*x") + d;
  auto add = [&](const std::string& option) { options += (options.empty() ? "{" : ",") + option; };
  for (const std::string& binding : bindingNames(*norm.spec)) add(binding + "=4");
  if (wish.channelsFirst) add("layout=channels_first");
  if (wish.mask) add("mask");
  if (!options.empty()) options += "}";
  auto problem = parseProblem(
      norm.name + ":" + std::string(name(wish.entry)) + "@" + wish.dtype + "[" + shape + "]" + options,
      findNorm);
  return problem ? std::optional(*problem) : std::nullopt;
}

cpu::Isa isaOf(llvm::StringRef name) { return llvm::cantFail(cpu::findIsa(name)); }

std::vector<cpu::Isa> setsAndCores() {
  std::vector<cpu::Isa> list = cpu::instructionSets();
  for (const char* name : {"x86-64-v3:zen3", "x86-64-v4:zen4", "x86-64-v3:cove", "x86-64-v4:cove",
                           "x86-64-v4-bf16:granite", "x86-64-v4-bf16:zen5"})
    list.push_back(isaOf(name));
  return list;
}

Strategy strategyOf(llvm::StringRef name) {
  return name == "streamed" ? Strategy::Streamed : Strategy::Resident;
}

mlir::DialectRegistry normDialects() {
  mlir::DialectRegistry registry;
  registry.insert<NormDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  return registry;
}

void expandMath(KernelOp kernel) {
  mlir::PassManager passes(kernel.getContext());
  for (auto pass : {expandRsqrt, expandLog, expandExp, expandAbs}) passes.addPass(pass());
  EXPECT_TRUE(succeeded(passes.run(kernel->getParentOfType<mlir::ModuleOp>())));
}

Planned::Planned(const Problem& problem, Strategy strategy)
    : context_(normDialects(), mlir::MLIRContext::Threading::DISABLED) {
  context_.loadAllAvailableDialects();
  module_ = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context_));
  auto kernel = planKernel(*module_, problem, strategy, "kernel");
  if (kernel)
    kernel_ = *kernel;
  else
    error = llvm::toString(kernel.takeError());
}

}  // namespace normc::codegen
