// Absolute values as a mask.
#include "codegen/lower/Expand.h"
#include "codegen/lower/Floats.h"

using namespace mlir;

namespace normc::codegen {

/// A mask: the CUDA passes would call the device library.
static Value absOf(Floats& f, Value x) {
  const unsigned bits = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  return f.fromBits(f.integer<arith::AndIOp>(f.toBits(x), llvm::maskTrailingOnes<uint64_t>(bits - 1)));
}

PassPtr expandAbs() {
  return modulePass("expand-abs", [](ModuleOp module) { expandEach<math::AbsFOp>(module, absOf); });
}

}  // namespace normc::codegen
