// Addresses in dynamic shared memory.
#include "codegen/targets/cuda/SharedPieces.h"

#include "codegen/targets/cuda/Launch.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen::cuda {

int64_t bytesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8 : elementBytes(type);
}

Value dynamicMemory(KernelThread& k) {
  Loops& l = k.l;
  auto module = k.function->getParentOfType<gpu::GPUModuleOp>();
  const std::string name = (k.function.getName() + "_ahead").str();
  auto memory = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!memory) {
    OpBuilder b(module.getBodyRegion());
    memory = LLVM::GlobalOp::create(b, l.loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
                                    /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
                                    /*alignment=*/kCopiedBytes, kSharedSpace);
  }
  return LLVM::AddressOfOp::create(l.b, l.loc, memory);
}

Value SharedPieces::begin(Value offset, Value index, int64_t bytes) {
  Value at = l_.add(offset, l_.mul(index, l_.index(pieceOf(bytes))));
  Value memory = dynamicMemory(k_);
  return LLVM::GEPOp::create(l_.b, l_.loc, memory.getType(), l_.b.getI8Type(), memory,
                             ValueRange{k_.toI64(at)});
}

Value SharedPieces::at(Value begin, Value slot, int64_t slotBytes, int64_t offset) {
  const auto type = begin.getType(), byte = Type(l_.b.getI8Type());
  Value before = l_.mul(slot, l_.index(slotBytes * threads_));
  Value first = LLVM::GEPOp::create(l_.b, l_.loc, type, byte, begin, ValueRange{k_.toI64(before)});
  return LLVM::GEPOp::create(l_.b, l_.loc, type, byte, first,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset * threads_)});
}

Value SharedPieces::load(Value begin, Value slot, int64_t slotBytes, int64_t offset, Type type) {
  const int64_t bytes = bytesOf(type), piece = pieceOf(bytes);
  auto load = [&](int64_t from, Type part) -> Value {
    return LLVM::LoadOp::create(l_.b, l_.loc, part, at(begin, slot, slotBytes, offset + from),
                                unsigned(piece));
  };
  if (piece == bytes) return load(0, type);
  auto vector = cast<VectorType>(type);
  auto part = VectorType::get({vector.getNumElements() * piece / bytes}, vector.getElementType());
  Value all = l_.zero(type);
  for (int64_t from = 0; from < bytes; from += piece)
    all = vector::InsertStridedSliceOp::create(l_.b, l_.loc, load(from, part), all,
                                               from / piece * part.getNumElements(), 1);
  return all;
}

void SharedPieces::store(Value begin, Value slot, int64_t slotBytes, int64_t offset, Value v) {
  const int64_t bytes = bytesOf(v.getType()), piece = pieceOf(bytes), parts = bytes / piece;
  auto store = [&](int64_t from, Value part) {
    LLVM::StoreOp::create(l_.b, l_.loc, part, at(begin, slot, slotBytes, offset + from), unsigned(piece));
  };
  if (parts == 1) return store(0, v);
  const int64_t each = cast<VectorType>(v.getType()).getNumElements() / parts;
  for (int64_t i = 0; i < parts; ++i)
    store(i * piece, vector::ExtractStridedSliceOp::create(l_.b, l_.loc, v, i * each, each, 1));
}

}  // namespace normc::codegen::cuda
