// Non-temporal stores of 16-bit floats as words.
#include "codegen/lower/Expand.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

PassPtr nontemporalWords() {
  return modulePass("nontemporal-words", [](ModuleOp module) {
    module.walk([](vector::StoreOp store) {
      VectorType type = store.getVectorType();
      if (!store.getNontemporal() || type.getElementTypeBitWidth() != 16 || type.getNumElements() % 2) return;
      OpBuilder b(store);
      auto words = VectorType::get({type.getNumElements() / 2}, b.getF32Type());
      Value value = LLVM::BitcastOp::create(b, store.getLoc(), words, store.getValueToStore());
      value = LLVM::CallIntrinsicOp::create(b, store.getLoc(), words,
                                            b.getStringAttr("llvm.arithmetic.fence"), value)
                  .getResult(0);
      store.getValueToStoreMutable().assign(LLVM::BitcastOp::create(b, store.getLoc(), type, value));
    });
  });
}

}  // namespace normc::codegen
