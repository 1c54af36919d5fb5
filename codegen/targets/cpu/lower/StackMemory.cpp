#include "codegen/targets/cpu/lower/StackMemory.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

StackMemory::StackMemory(Loops& l, int64_t elements, Type element, int64_t alignment)
    : memory_(memref::AllocaOp::create(l.b, l.loc, MemRefType::get({elements}, element),
                                       alignment ? l.b.getI64IntegerAttr(alignment) : IntegerAttr())) {}

Type StackMemory::element() const { return cast<MemRefType>(memory_.getType()).getElementType(); }

Value StackMemory::address(Loops& l) const {
  return memref::ExtractAlignedPointerAsIndexOp::create(l.b, l.loc, memory_);
}

Value StackMemory::load(Loops& l, Value at, int64_t lanes) const {
  if (!lanes) return memref::LoadOp::create(l.b, l.loc, memory_, at);
  return vector::LoadOp::create(l.b, l.loc, VectorType::get({lanes}, element()), memory_, ValueRange{at});
}

void StackMemory::store(Loops& l, Value at, Value v, Value mask) const {
  if (!isa<VectorType>(v.getType()))
    memref::StoreOp::create(l.b, l.loc, v, memory_, at);
  else if (mask)
    vector::MaskedStoreOp::create(l.b, l.loc, memory_, ValueRange{at}, mask, v);
  else
    vector::StoreOp::create(l.b, l.loc, v, memory_, ValueRange{at});
}

}  // namespace normc::codegen
