#include "codegen/lower/PhaseLowering.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen {

/// An operand whose memory no other operand of the phase shares. Outputs may be
/// the memory of the input of the same kind, and state may be updated in place.
static bool isUnshared(TensorOp t) {
  StringRef name = t.getSymName();
  if (t.getRole() == "state_in" || t.getRole() == "state_out") return false;
  bool output = t.getAccess() == "write" && t.isXSized();
  if (output) return false;
  auto kernel = t->getParentOfType<KernelOp>();
  bool forward = SymbolTable::lookupSymbolIn(kernel, "y");
  return !(name == "x" && forward) && name != "dy";
}

void lowerToLoops(ModuleOp module) {
  OpBuilder b(module.getContext());
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
    Parameters parameters(kernel);
    for (auto phase : kernel.getOps<PhaseOp>()) {
      b.setInsertionPointToEnd(module.getBody());
      std::string symbol = (kernel.getSymName() + "." + phase.getSymName()).str();
      auto function = func::FuncOp::create(b, phase.getLoc(), symbol, b.getFunctionType(parameters.types, {}));
      function.setPrivate();
      for (auto [i, t] : llvm::enumerate(parameters.tensors))
        if (isUnshared(t)) function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
      b.setInsertionPointToEnd(function.addEntryBlock());
      Loops loops(b, phase.getLoc());
      Frame frame(loops, kernel, phase, function);
      PhaseLowering(loops, frame).run();
      func::ReturnOp::create(b, phase.getLoc());
    }
    kernel.erase();
  }
}

}  // namespace normc::codegen
