#include "codegen/targets/cuda/Intrinsics.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace normc::codegen::cuda {

template <typename Op>
static void useIntrinsic(ModuleOp module, StringRef name) {
  module.walk([&](Op op) {
    OpBuilder b(op);
    auto call =
        LLVM::CallIntrinsicOp::create(b, op.getLoc(), op.getType(), b.getStringAttr(name), op->getOperands());
    op.replaceAllUsesWith(call.getResult(0));
    op.erase();
  });
}

PassPtr mathToIntrinsics() {
  return modulePass("math-to-intrinsics", [](ModuleOp module) {
    useIntrinsic<math::SqrtOp>(module, "llvm.sqrt");
    useIntrinsic<math::FmaOp>(module, "llvm.fma");
    useIntrinsic<math::RoundEvenOp>(module, "llvm.roundeven");
  });
}

}  // namespace normc::codegen::cuda
