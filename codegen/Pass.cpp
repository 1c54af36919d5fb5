#include "codegen/Pass.h"

namespace normc::codegen {

class ModulePass : public mlir::PassWrapper<ModulePass, mlir::OperationPass<mlir::ModuleOp>> {
 public:
  ModulePass(llvm::StringRef name, std::function<void(mlir::ModuleOp)> run)
      : name_(name), run_(std::move(run)) {}
  llvm::StringRef getArgument() const override { return name_; }
  llvm::StringRef getName() const override { return name_; }
  void runOnOperation() override { run_(getOperation()); }

 private:
  llvm::StringRef name_;
  std::function<void(mlir::ModuleOp)> run_;
};

PassPtr modulePass(llvm::StringLiteral name, std::function<void(mlir::ModuleOp)> run) {
  return std::make_unique<ModulePass>(name, std::move(run));
}

}  // namespace normc::codegen
