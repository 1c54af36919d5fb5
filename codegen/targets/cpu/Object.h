// From the LLVM dialect to machine code: LLVM's optimiser and assembler.
#pragma once

#include <string>

#include "codegen/targets/cpu/CpuIsa.h"
#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace normc::codegen::cpu {

/// Translates a module in the LLVM dialect to LLVM IR and optimises it at -O3.
llvm::Expected<std::unique_ptr<llvm::Module>> optimizedLlvm(mlir::ModuleOp, const Isa&, llvm::LLVMContext&);

enum class Emit { Object, Assembly };
/// `reducesStrength`: for x86 too runs loop strength reduction, which takes a third of the time. There only
/// loops down columns gain from it: they multiply a row and a stride. A loop along a run has one counter,
/// which an address can contain beside a pointer to the row and a constant.
llvm::Expected<std::string> machineCode(llvm::Module&, const Isa&, Emit, bool reducesStrength = true);

}  // namespace normc::codegen::cpu
