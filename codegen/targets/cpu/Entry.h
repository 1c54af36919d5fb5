// The exported functions of a kernel object. Each has the signature of runtime/abi/kernel.h, unpacks its
// arguments and calls a lowered phase function.
#pragma once

#include "codegen/lower/AccessLowering.h"
#include "mlir/IR/BuiltinOps.h"

namespace normc::codegen::cpu {

/// The facts of a kernel that its wrappers need; collected before lowering erases its norm.kernel.
struct EntryPoints {
  explicit EntryPoints(KernelOp);
  unsigned tensors = 0;
  llvm::SmallVector<unsigned> strided;                            ///< indices of tensors
  llvm::SmallVector<std::pair<std::string, std::string>> phases;  ///< inner symbol, exported symbol
};

/// Adds one `void f(const normc_kernel_args*, int64_t task)` per phase to a module
/// that is already in the LLVM dialect.
void addEntryPoints(mlir::ModuleOp, const EntryPoints&);

}  // namespace normc::codegen::cpu
