// The exported functions of a kernel object: abi/kernel.h on the outside, the
// lowered phase functions inside.
#pragma once

#include "codegen/lower/AccessLowering.h"
#include "mlir/IR/BuiltinOps.h"

namespace normc::codegen::cpu {

/// What the wrappers need to know of a kernel once its norm.kernel is gone.
struct EntryPoints {
  explicit EntryPoints(KernelOp);
  unsigned tensors = 0;
  llvm::SmallVector<unsigned> strided;                          ///< indices of tensors
  llvm::SmallVector<std::pair<std::string, std::string>> phases;  ///< inner symbol, exported symbol
};

/// Adds one `void f(const normc_kernel_args*, int64_t task)` per phase to a module
/// that is already in the LLVM dialect.
void addEntryPoints(mlir::ModuleOp, const EntryPoints&);

}  // namespace normc::codegen::cpu
