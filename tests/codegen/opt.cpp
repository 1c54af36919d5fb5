// normc-opt PASS FILE: the module of a file after one pass, as text, for the FileCheck tests in lit/passes.
// Passes that need a schedule are shown by `normc-emit after=PASS PROBLEM`.
#include <iostream>
#include <map>

#include "codegen/lower/Expand.h"
#include "codegen/targets/cpu/BlocksToLlvm.h"
#include "codegen/targets/cpu/Entry.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "codegen/targets/cuda/Approximations.h"
#include "codegen/targets/cuda/Intrinsics.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace normc::codegen;

int main(int count, char** arguments) {
  const std::map<std::string, PassPtr (*)()> known{
      {"norm-to-loops", normToLoops},
      {"expand-division", expandDivision},
      {"expand-rsqrt", expandRsqrt},
      {"expand-log", expandLog},
      {"expand-exp", expandExp},
      {"expand-abs", expandAbs},
      {"expand-bf16", [] { return expandBF16(/*instruction=*/false, /*whole=*/0); }},
      {"expand-bf16-by-instruction", [] { return expandBF16(/*instruction=*/true, /*whole=*/32); }},
      {"nontemporal-words", nontemporalWords},
      {"blocks-to-llvm", cpu::blocksToLlvm},
      {"add-entry-points", cpu::addEntryPoints},
      {"approximate-functions", cuda::approximateFunctions},
      {"math-to-intrinsics", cuda::mathToIntrinsics}};
  if (count != 3 || !known.contains(arguments[1])) {
    std::cerr << "usage: normc-opt PASS FILE; passes:";
    for (const auto& [name, pass] : known) std::cerr << " " << name;
    std::cerr << "\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect, NormDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.allowUnregisteredDialects();  // the attributes of norm
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(arguments[2], &context);
  mlir::PassManager passes(&context);
  passes.addPass(known.at(arguments[1])());
  if (!module || failed(passes.run(*module))) return 1;
  llvm::outs() << *module;
  return 0;
}
