#include "codegen/Pass.h"

namespace normc::codegen {

class ModulePass : public mlir::PassWrapper<ModulePass, mlir::OperationPass<mlir::ModuleOp>> {
 public:
  ModulePass(llvm::StringRef name, std::function<llvm::LogicalResult(mlir::ModuleOp)> run)
      : name_(name), run_(std::move(run)) {}
  llvm::StringRef getArgument() const override { return name_; }
  llvm::StringRef getName() const override { return name_; }
  void runOnOperation() override {
    if (failed(run_(getOperation()))) signalPassFailure();
  }

 private:
  llvm::StringRef name_;
  std::function<llvm::LogicalResult(mlir::ModuleOp)> run_;
};

PassPtr fallibleModulePass(llvm::StringLiteral name, std::function<llvm::LogicalResult(mlir::ModuleOp)> run) {
  return std::make_unique<ModulePass>(name, std::move(run));
}

PassPtr modulePass(llvm::StringLiteral name, std::function<void(mlir::ModuleOp)> run) {
  return fallibleModulePass(name, [run = std::move(run)](mlir::ModuleOp module) {
    run(module);
    return llvm::success();
  });
}

}  // namespace normc::codegen
