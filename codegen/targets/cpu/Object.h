// From the LLVM dialect to machine code: LLVM's optimiser and assembler, and the
// linker that makes one shared object of many kernels.
#pragma once

#include <string>

#include "codegen/targets/cpu/CpuIsa.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace normc::codegen::cpu {

/// Translates a module in the LLVM dialect to LLVM IR and optimises it at -O3.
llvm::Expected<std::unique_ptr<llvm::Module>> optimizedLlvm(mlir::ModuleOp, const Isa&, llvm::LLVMContext&);

enum class Emit { Object, Assembly };
llvm::Expected<std::string> machineCode(llvm::Module&, const Isa&, Emit);

/// Links the objects to one freestanding shared object: no constructors, nothing undefined, no dependency.
llvm::Expected<std::string> linkShared(llvm::ArrayRef<std::string> objects, const Isa&);

}  // namespace normc::codegen::cpu
