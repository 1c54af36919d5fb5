// Copies of runs to shared memory, and the accesses of a thread there.
#include "codegen/targets/cuda/SharedRuns.h"

#include "codegen/targets/cuda/Ptx.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen::cuda {

static constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

/// The least that cp.async copies.
static constexpr int64_t kLeastCopied = 4;

static int64_t bytesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8
                : type.getIntOrFloatBitWidth() / 8;
}

/// Returns the bytes of an access that are contiguous in shared memory.
static int64_t pieceOf(int64_t bytes) { return std::min(bytes, kCopiedBytes); }

void SharedRuns::begin(SlabOp slab, bool keep, int64_t sums) {
  tensors_.clear();
  run_ = sumsAt_ = {};
  sums_ = sums;
  if (!k_.s.shared) return;
  const auto tensors = readAlways(slab);
  if (keep) tensors_ = tensors;
  if (!sums) return;
  const auto reads = int64_t(tensors.size());
  const int64_t runs = reads ? sharedRunBytes(k_.s, reads, bytesOf(f_.stored(tensors[0]))) : 0;
  sumsAt_ = bytesFrom(copiedBytes(k_.s, reads) + runs, l_.index(0), bytesOf(k_.vectorType()));
  l_.forEach(l_.index(0), l_.index(k_.s.shared), 1, [&](Value slot) {
    for (int64_t p = 0; p < sums; ++p) setSum(size_t(p), {.slot = slot}, l_.zero(k_.vectorType()));
  });
}

//===-- Places ----------------------------------------------------------------------===//

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

Value globalAddress(KernelThread& k, TensorOp t, Value element) {
  Loops& l = k.l;
  auto generic = LLVM::LLVMPointerType::get(l.b.getContext()),
       global = LLVM::LLVMPointerType::get(l.b.getContext(), kGlobalSpace);
  Value base = k.toI64(memref::ExtractAlignedPointerAsIndexOp::create(l.b, l.loc, k.f.pointer(t)));
  Value begin =
      LLVM::AddrSpaceCastOp::create(l.b, l.loc, global, LLVM::IntToPtrOp::create(l.b, l.loc, generic, base));
  return LLVM::GEPOp::create(l.b, l.loc, global, k.f.stored(t), begin, ValueRange{k.toI64(element)});
}

/// Returns the address of this thread's first piece, `offset` and `place` bytes from the beginning, of
/// accesses of `bytes`.
Value SharedRuns::bytesFrom(int64_t offset, Value place, int64_t bytes) {
  Value at = l_.add(l_.add(place, l_.index(offset)), l_.mul(k_.thread, l_.index(pieceOf(bytes))));
  Value memory = dynamicMemory(k_);
  return LLVM::GEPOp::create(l_.b, l_.loc, memory.getType(), l_.b.getI8Type(), memory,
                             ValueRange{k_.toI64(at)});
}

/// Returns the address of this thread's part of the run of a step.
Value SharedRuns::runOf(Value step) {
  const int64_t bytes = bytesOf(k_.storedType(tensors_[0], k_.lanes()));
  Value place = l_.index(0);
  if (const int64_t steps = k_.s.prefetch.copiesAhead() + 1; steps > 1)
    place = l_.mul(l_.rem(step, l_.index(steps)), l_.index(k_.s.shared * reads() * bytes * k_.threads()));
  return bytesFrom(copiedBytes(k_.s, reads()), place, bytes);
}

/// Returns the address of a piece, `offset` bytes of each thread from the beginning of a slot that has
/// `slotBytes` of each.
Value SharedRuns::pieceAt(Value place, Value slot, int64_t slotBytes, int64_t offset) {
  const auto type = place.getType(), byte = Type(l_.b.getI8Type());
  Value before = l_.mul(slot, l_.index(slotBytes * k_.threads()));
  Value begin = LLVM::GEPOp::create(l_.b, l_.loc, type, byte, place, ValueRange{k_.toI64(before)});
  return LLVM::GEPOp::create(l_.b, l_.loc, type, byte, begin,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset * k_.threads())});
}

Value SharedRuns::loadPieces(Value place, Value slot, int64_t slotBytes, int64_t offset, Type type) {
  const int64_t bytes = bytesOf(type), piece = pieceOf(bytes);
  auto load = [&](int64_t at, Type part) -> Value {
    return LLVM::LoadOp::create(l_.b, l_.loc, part, pieceAt(place, slot, slotBytes, offset + at),
                                unsigned(piece));
  };
  if (piece == bytes) return load(0, type);
  auto vector = cast<VectorType>(type);
  auto part = VectorType::get({vector.getNumElements() * piece / bytes}, vector.getElementType());
  Value all = l_.zero(type);
  for (int64_t at = 0; at < bytes; at += piece)
    all = vector::InsertStridedSliceOp::create(l_.b, l_.loc, load(at, part), all,
                                               at / piece * part.getNumElements(), 1);
  return all;
}

void SharedRuns::storePieces(Value place, Value slot, int64_t slotBytes, int64_t offset, Value v) {
  const int64_t bytes = bytesOf(v.getType()), piece = pieceOf(bytes), parts = bytes / piece;
  auto store = [&](int64_t at, Value part) {
    LLVM::StoreOp::create(l_.b, l_.loc, part, pieceAt(place, slot, slotBytes, offset + at), unsigned(piece));
  };
  if (parts == 1) return store(0, v);
  const int64_t each = cast<VectorType>(v.getType()).getNumElements() / parts;
  for (int64_t i = 0; i < parts; ++i)
    store(i * piece, vector::ExtractStridedSliceOp::create(l_.b, l_.loc, v, i * each, each, 1));
}

//===-- Along a run -----------------------------------------------------------------===//

Values SharedRuns::forEach(int64_t together, Values running,
                           llvm::function_ref<void(ArrayRef<Position>, Values&)> step) {
  const Place& own = access_.run().place;
  auto known = Loops::constant(access_.leastCount());
  const int64_t whole = known ? std::clamp<int64_t>(*known / own.team - k_.s.tile, 0, k_.s.shared) : 0;
  const int64_t looped = whole / together * together;
  auto at = [&](Value slot, bool inside) {
    Value access = l_.mul(l_.add(slot, l_.index(k_.s.tile)), l_.index(own.team));
    Position p = access_.at(l_.add(own.lane, access), inside);
    p.slot = slot;
    return p;
  };
  running = l_.forEach(l_.index(0), l_.index(looped), together, running, [&](Value slot, ValueRange now) {
    Values next(now);
    SmallVector<Position> positions;
    for (int64_t u = 0; u < together; ++u) positions.push_back(at(l_.add(slot, l_.index(u)), true));
    step(positions, next);
    return next;
  });
  SmallVector<Position> rest;
  for (int64_t slot = looped; slot < whole; ++slot) rest.push_back(at(l_.index(slot), true));
  if (!rest.empty()) step(rest, running);
  for (int64_t slot = whole; slot < k_.s.shared; ++slot) step(at(l_.index(slot), false), running);
  return running;
}

void SharedRuns::copy(const Replica& replica, Value step) {
  const Value run = runOf(step);
  const Type type = k_.storedType(tensors_[0], k_.lanes());
  const int64_t bytes = bytesOf(type), piece = pieceOf(bytes), slotBytes = reads() * bytes;
  const bool copies = !access_.anywhere() && piece >= kLeastCopied;
  auto copy = [&](const Position& p) {
    for (auto [i, t] : llvm::enumerate(tensors_)) {
      Value element = f_.address(t, access_.along(replica.at, p));
      for (int64_t at = 0; at < bytes; at += piece)
        copyToShared(l_.b, l_.loc, pieceAt(run, p.slot, slotBytes, int64_t(i) * bytes + at),
                     globalAddress(k_, t, l_.add(element, l_.index(at / bytesOf(f_.stored(t))))), piece);
    }
  };
  auto move = [&](ArrayRef<Position> positions) {
    Values loaded;
    for (const Position& p : positions)
      for (TensorOp t : tensors_)
        loaded.push_back(
            access_.loadStored(t, access_.along(replica.at, p), access_.lanes(p), replica.index));
    auto next = loaded.begin();
    for (const Position& p : positions)
      for (size_t i = 0; i < tensors_.size(); ++i)
        storePieces(run, p.slot, slotBytes, int64_t(i) * bytes, *next++);
  };
  forEach(copies || k_.s.vector > 1 ? 4 : 8, {}, [&](ArrayRef<Position> positions, Values&) {
    k_.storeWhere(l_.both(replica.active, positions[0].inside), [&] {
      if (!copies) return move(positions);
      for (const Position& p : positions) copy(p);
    });
  });
}

Value SharedRuns::load(TensorOp t, const Position& p, Value condition) {
  const Type type = k_.storedType(t, access_.lanes(p));
  const int64_t bytes = bytesOf(type), which = llvm::find(tensors_, t) - tensors_.begin();
  auto load = [&] { return f_.widened(t, loadPieces(run_, p.slot, reads() * bytes, which * bytes, type)); };
  return condition ? l_.when(condition, l_.zero(k_.vectorType()), [&] { return Values{load()}; })[0] : load();
}

//===-- Sums per feature ------------------------------------------------------------===//

Value SharedRuns::sum(size_t which, const Position& p) {
  const int64_t bytes = bytesOf(k_.vectorType());
  return loadPieces(sumsAt_, p.slot, sums_ * bytes, int64_t(which) * bytes, k_.vectorType());
}

void SharedRuns::setSum(size_t which, const Position& p, Value v) {
  const int64_t bytes = bytesOf(k_.vectorType());
  storePieces(sumsAt_, p.slot, sums_ * bytes, int64_t(which) * bytes, v);
}

}  // namespace normc::codegen::cuda
