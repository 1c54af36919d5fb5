// The pass: a function for each phase, with its parameters, and the lowering of the phase in it.
#include "codegen/targets/cpu/Entry.h"
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace normc::codegen {

/// The parameters of every phase function of a CPU kernel, in the order in which its entry wrapper passes
/// them.
static SmallVector<Type> parameterTypes(KernelOp kernel) {
  Builder b(kernel.getContext());
  SmallVector<Type> types;
  unsigned strided = 0;
  for (auto t : kernel.getOps<TensorOp>()) {
    types.push_back(MemRefType::get({}, Access().stored(t)));
    strided += isStrided(t);
  }
  types.append(3 * strided + 3, b.getIndexType());       // strides; segments, rows, features
  types.push_back(MemRefType::get({}, b.getF64Type()));  // scalars
  types.push_back(MemRefType::get({}, b.getI64Type()));  // cuts
  types.push_back(b.getIndexType());                     // task
  return types;
}

static Value elementAt(Loops& l, Value pointer, Type element, int64_t index) {
  Value flat = memref::ReinterpretCastOp::create(l.b, l.loc, MemRefType::get({ShapedType::kDynamic}, element),
                                                 pointer, OpFoldResult(l.b.getIndexAttr(0)),
                                                 ArrayRef<OpFoldResult>{l.b.getIndexAttr(int64_t(1) << 60)},
                                                 ArrayRef<OpFoldResult>{l.b.getIndexAttr(1)});
  return memref::LoadOp::create(l.b, l.loc, flat, l.index(index));
}

static Arguments argumentsOf(Loops& l, KernelOp kernel, func::FuncOp function) {
  Arguments a;
  unsigned next = 0, strided = 0;
  for (auto t : kernel.getOps<TensorOp>()) {
    a.pointers.push_back(function.getArgument(next++));
    strided += isStrided(t);
  }
  auto take = [&]() -> Value { return function.getArgument(next++); };
  for (unsigned i = 0; i < strided; ++i) {
    Value segment = take(), row = take(), task = take();
    a.strides.push_back({segment, row, task});
  }
  a.segments = take();
  a.rows = take();
  a.features = take();
  Value scalars = take(), cuts = take();
  a.task = take();
  a.scalar = [&l, scalars](unsigned i) { return elementAt(l, scalars, l.b.getF64Type(), i); };
  a.cut = [&l, cuts](unsigned phase, Arguments::CutField field) -> Value {
    return arith::IndexCastOp::create(l.b, l.loc, l.b.getIndexType(),
                                      elementAt(l, cuts, l.b.getI64Type(), 3 * phase + field));
  };
  return a;
}

static void lowerToLoops(ModuleOp module) {
  OpBuilder b(module.getContext());
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
    SmallVector<Type> types = parameterTypes(kernel);
    for (auto phase : kernel.getOps<PhaseOp>()) {
      b.setInsertionPointToEnd(module.getBody());
      std::string symbol = (kernel.getSymName() + "." + phase.getSymName()).str();
      auto function = func::FuncOp::create(b, phase.getLoc(), symbol, b.getFunctionType(types, {}));
      function.setPrivate();
      SmallVector<bool> strided;
      for (auto t : kernel.getOps<TensorOp>()) strided.push_back(isStrided(t));
      function->setAttr(cpu::stridedAttrName(), b.getDenseBoolArrayAttr(strided));
      for (auto [i, t] : llvm::enumerate(kernel.getOps<TensorOp>()))
        if (isUnshared(t)) function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
      b.setInsertionPointToEnd(function.addEntryBlock());
      Loops loops(b, phase.getLoc());
      AccessLowering frame(loops, kernel, phase, argumentsOf(loops, kernel, function));
      PhaseLowering(loops, frame).run();
      func::ReturnOp::create(b, phase.getLoc());
    }
    kernel.erase();
  }
}

PassPtr normToLoops() { return modulePass("norm-to-loops", lowerToLoops); }

}  // namespace normc::codegen
