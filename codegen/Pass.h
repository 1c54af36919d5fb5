// A step of a compilation as an MLIR pass. All passes of normc are made by modulePass, each in a file of its
// own; Compile.cpp of each target lists them in order.
#pragma once

#include <functional>
#include <memory>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace normc::codegen {

using PassPtr = std::unique_ptr<mlir::Pass>;

/// Returns a pass that calls `run` with the module. `name` lives as long as the program: it selects the pass
/// for `normc compile --print-after`. What `run` refers to has to live as long as the pass.
PassPtr modulePass(llvm::StringLiteral name, std::function<void(mlir::ModuleOp)> run);
/// The same for `run` that may fail, with a diagnostic.
PassPtr fallibleModulePass(llvm::StringLiteral name, std::function<llvm::LogicalResult(mlir::ModuleOp)> run);

}  // namespace normc::codegen
