#include "codegen/targets/cpu/Entry.h"

#include <cstddef>

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "runtime/abi/kernel.h"

using namespace mlir;

namespace normc::codegen::cpu {

llvm::StringRef stridedAttrName() { return "normc.strided"; }

static void addWrappers(ModuleOp module) {
  OpBuilder b(module.getContext());
  Location loc = module.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = b.getI64Type();
  auto none = LLVM::LLVMVoidType::get(module.getContext());
  for (auto callee : llvm::to_vector(module.getOps<LLVM::LLVMFuncOp>())) {
    auto list = dyn_cast_if_present<DenseBoolArrayAttr>(callee->removeAttr(stridedAttrName()));
    if (!list) continue;
    const ArrayRef<bool> strided = list.asArrayRef();
    const auto [kernel, phase] = callee.getName().rsplit('.');
    // Internal: LLVM inlines it into its wrapper, and the object exports wrappers only.
    callee.setLinkage(LLVM::Linkage::Internal);
    b.setInsertionPointToEnd(module.getBody());
    auto function = LLVM::LLVMFuncOp::create(b, loc, (kernel + "_" + phase).str(),
                                             LLVM::LLVMFunctionType::get(none, {pointer, i64}));
    b.setInsertionPointToStart(function.addEntryBlock(b));
    // Loads the field of `type` that is `offset` bytes behind `base`.
    auto field = [&](Value base, Type type, size_t offset) -> Value {
      Value at =
          LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(), base, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
      return LLVM::LoadOp::create(b, loc, type, at);
    };
    // The order of `values` is that of parameterTypes in lower/LowerToLoops.cpp.
    Value args = function.getArgument(0);
    Value operands = field(args, pointer, offsetof(normc_kernel_args, operand));
    SmallVector<Value> values;
    for (unsigned i = 0; i < strided.size(); ++i)
      values.push_back(field(operands, pointer, i * sizeof(normc_operand) + offsetof(normc_operand, data)));
    for (unsigned i = 0; i < strided.size(); ++i)
      for (size_t stride : {offsetof(normc_operand, segment_stride), offsetof(normc_operand, row_stride),
                            offsetof(normc_operand, task_stride)})
        if (strided[i]) values.push_back(field(operands, i64, i * sizeof(normc_operand) + stride));
    for (size_t extent : {offsetof(normc_kernel_args, segments), offsetof(normc_kernel_args, rows),
                          offsetof(normc_kernel_args, features)})
      values.push_back(field(args, i64, extent));
    values.push_back(field(args, pointer, offsetof(normc_kernel_args, scalar)));
    values.push_back(field(args, pointer, offsetof(normc_kernel_args, cut)));
    values.push_back(function.getArgument(1));
    LLVM::CallOp::create(b, loc, callee, values);
    LLVM::ReturnOp::create(b, loc, ValueRange());
  }
}

PassPtr addEntryPoints() { return modulePass("add-entry-points", addWrappers); }

}  // namespace normc::codegen::cpu
