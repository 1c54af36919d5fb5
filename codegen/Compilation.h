// One compilation: an MLIR context, a module, and the steps that all targets have in common. Compilations
// share no state, so several threads may compile at once.
#pragma once

#include <string>

#include "codegen/Compile.h"
#include "codegen/Pass.h"
#include "codegen/plan/Planner.h"
#include "llvm/IR/LLVMContext.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

namespace normc::codegen {

class Compilation {
 public:
  KernelOp kernel() { return kernel_; }
  /// Returns the module as text.
  std::string text();
  /// Removes repeated constants and views, to make the text readable.
  llvm::Error tidy() { return run("tidying the loops", "cse"); }
  /// Keeps the text of the module after each run of these passes.
  void show(llvm::ArrayRef<std::string> passes) { shown_ = passes; }
  /// Returns the passes that have run, in order.
  const std::vector<PassText>& passes() const { return ran_; }

 protected:
  /// `target`: the dialects that the target lowers to, in addition to those of loops and LLVM.
  Compilation(const Problem&, void (*target)(mlir::DialectRegistry&));

  /// Plans the kernel into sweeps. `vector`: lanes of a vector, for plans that depend on it.
  llvm::Error plan(Strategy, llvm::StringRef symbol, int64_t vector = 0);
  /// Runs passes in order, then verifies the module. A pass is a PassPtr, or the text of a pipeline of MLIR's
  /// passes. `step`: their name in an error.
  template <class... Passes>
  llvm::Error run(llvm::StringRef step, Passes&&... passes) {
    mlir::PassManager manager(&context_);
    const bool known = (add(manager, std::forward<Passes>(passes)) && ...);
    return known ? run(step, manager) : fault("the pass pipeline");
  }

 private:
  bool add(mlir::PassManager&, PassPtr);
  bool add(mlir::PassManager&, llvm::StringRef pipeline);
  llvm::Error run(llvm::StringRef step, mlir::PassManager&);
  llvm::Error fault(llvm::StringRef step);

  std::vector<std::string> shown_;
  std::vector<PassText> ran_;

 protected:
  const Problem& problem_;
  mlir::MLIRContext context_;
  llvm::LLVMContext llvm_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  KernelOp kernel_;
  std::string diagnostics_;
};

}  // namespace normc::codegen
