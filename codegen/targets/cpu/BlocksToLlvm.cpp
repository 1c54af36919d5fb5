#include "codegen/targets/cpu/BlocksToLlvm.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/LoweringOptions.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace normc::codegen::cpu {

/// The conversions of all dialects as one: each of them alone would visit every operation, and the next one
/// would remove the casts between what is converted and what is not yet.
static LogicalResult toLlvm(ModuleOp module) {
  MLIRContext* context = module.getContext();
  IRRewriter rewriter(context);
  // The conversion does not visit unreachable blocks, and would leave them as they are.
  for (auto function : module.getOps<func::FuncOp>())
    (void)eraseUnreachableBlocks(rewriter, function->getRegions());
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;  // pointers keep their `noalias`
  LLVMTypeConverter types(context, options);
  RewritePatternSet patterns(context);
  const bool lanesFit32Bits = true;
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorMaskMaterializationPatterns(patterns, lanesFit32Bits);
  // A horizontal sum is a tree, not one addition after another for each lane.
  const bool reassociates = true;
  populateVectorToLLVMConversionPatterns(types, patterns, reassociates, lanesFit32Bits);
  populateMathToLLVMConversionPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  populateFuncToLLVMConversionPatterns(types, patterns);
  ConversionConfig config;
  config.allowPatternRollback = false;  // no pattern changes anything and then fails
  return applyPartialConversion(module, LLVMConversionTarget(*context), std::move(patterns), config);
}

PassPtr blocksToLlvm() { return fallibleModulePass("blocks-to-llvm", toLlvm); }

}  // namespace normc::codegen::cpu
