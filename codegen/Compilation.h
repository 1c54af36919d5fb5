// One compilation: an MLIR context, a module, and the steps that all targets have in common. Compilations
// share no state, so several threads may compile at once.
#pragma once

#include <string>

#include "codegen/plan/Planner.h"
#include "llvm/IR/LLVMContext.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace normc::codegen {

class Compilation {
 public:
  KernelOp kernel() { return kernel_; }
  /// Returns the module as text.
  std::string text();
  /// Removes repeated constants and views, to make the text readable.
  llvm::Error tidy() { return run("cse", "tidying the loops"); }

 protected:
  /// `target`: the dialects that the target lowers to, in addition to those of loops and LLVM.
  Compilation(const Problem&, void (*target)(mlir::DialectRegistry&));

  /// Plans the kernel into sweeps. `vector`: lanes of a vector, for plans that depend on it.
  llvm::Error plan(Strategy, llvm::StringRef symbol, int64_t vector = 0);
  /// Runs passes, then verifies the module. `step`: their name in an error.
  llvm::Error run(llvm::StringRef pipeline, llvm::StringRef step);
  /// Verifies the module.
  llvm::Error verified(llvm::StringRef step);
  llvm::Error fault(llvm::StringRef step);

  const Problem& problem_;
  mlir::MLIRContext context_;
  llvm::LLVMContext llvm_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  KernelOp kernel_;
  std::string diagnostics_;
};

}  // namespace normc::codegen
