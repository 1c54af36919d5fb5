// The part of a run that registers do not hold (`shared`): it stays in the block's dynamic shared
// memory, so a row that is too long for the registers of its threads is still read
// once.
//
//   access of a thread   | 0 .. tile - 1 | tile .. tile + shared - 1 |
//                           registers       shared memory, in a loop
//
// When a step begins, cp.async brings those accesses of all tensors, and every sweep reads
// them from there. A thread copies what it reads itself and waits for its own
// copies, so there is no barrier. Sums per feature of the same accesses are in shared memory, too,
// and belong to the thread. With asynchronous prefetch there is a
// ring of such places, and the copies of a step are part of its group (TeamAhead.cpp).
//
// Layout: [step][access][tensor][16 bytes of it][thread], and after that the sums in f32,
// [access][sum][16 bytes][thread]. Neighbouring threads access neighbouring words, so there are no bank
// conflicts.
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen::cuda {

static constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

/// Elements of one step of a loop over shared memory that are in registers together, at most four accesses;
/// half as many if scale and bias are shifted.
static constexpr int64_t kTogether = 16;
/// The least that cp.async copies.
static constexpr int64_t kLeastCopied = 4;

static int64_t bytesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8
                : type.getIntOrFloatBitWidth() / 8;
}

/// Returns the bytes of an access that are contiguous in shared memory.
static int64_t pieceOf(int64_t bytes) { return std::min(bytes, kCopiedBytes); }

/// Begins a slab: finds the tensors whose runs are in shared memory, and clears their sums per feature.
void TeamLowering::beginShared(SlabOp slab) {
  sharedTensors_.clear();
  sharedRun_ = sharedSums_ = {};
  if (!s_.shared) return;
  const auto tensors = readAlways(slab);
  if (holds_) sharedTensors_ = tensors;
  if (partials_.empty()) return;
  const auto reads = int64_t(tensors.size());
  const int64_t runs = reads ? sharedRunBytes(s_, reads, bytesOf(f_.stored(tensors[0]))) : 0,
                before = copiedBytes(s_, reads) + runs;
  sharedSums_ = sharedBytesFrom(before, l_.index(0), bytesOf(k_.vectorType()));
  const int64_t slotBytes = int64_t(partials_.size()) * bytesOf(k_.vectorType());
  l_.forEach(l_.index(0), l_.index(s_.shared), 1, [&](Value slot) {
    for (size_t p = 0; p < partials_.size(); ++p)
      storePieces(sharedSums_, slot, slotBytes, int64_t(p) * bytesOf(k_.vectorType()),
                  l_.zero(k_.vectorType()));
  });
}

//===-- Places ----------------------------------------------------------------------===//

/// Returns the dynamic shared memory of the block. All slabs use it, one after another.
Value TeamLowering::dynamicMemory() {
  auto module = k_.function->getParentOfType<gpu::GPUModuleOp>();
  const std::string name = (k_.function.getName() + "_ahead").str();
  auto memory = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!memory) {
    OpBuilder b(module.getBodyRegion());
    memory = LLVM::GlobalOp::create(b, l_.loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
                                    /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
                                    /*alignment=*/kCopiedBytes, kSharedSpace);
  }
  return LLVM::AddressOfOp::create(l_.b, l_.loc, memory);
}

/// Returns the address of an element of a tensor in the global space.
Value TeamLowering::globalAddress(TensorOp t, Value element) {
  OpBuilder& b = l_.b;
  auto generic = LLVM::LLVMPointerType::get(b.getContext()),
       global = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  auto word = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, l_.loc, b.getI64Type(), index);
  };
  Value base = word(memref::ExtractAlignedPointerAsIndexOp::create(b, l_.loc, f_.pointer(t)));
  Value begin =
      LLVM::AddrSpaceCastOp::create(b, l_.loc, global, LLVM::IntToPtrOp::create(b, l_.loc, generic, base));
  return LLVM::GEPOp::create(b, l_.loc, global, f_.stored(t), begin, ValueRange{word(element)});
}

/// Returns the address of this thread's first piece, `offset` and `place` bytes from the beginning, of
/// accesses of `bytes`.
Value TeamLowering::sharedBytesFrom(int64_t offset, Value place, int64_t bytes) {
  Value at = l_.add(l_.add(place, l_.index(offset)), l_.mul(k_.thread, l_.index(pieceOf(bytes))));
  Value word = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), at);
  Value memory = dynamicMemory();
  return LLVM::GEPOp::create(l_.b, l_.loc, memory.getType(), l_.b.getI8Type(), memory, ValueRange{word});
}

/// Returns the address of this thread's part of the run of the step that begins at `first`.
Value TeamLowering::sharedRunOf(Value first, int64_t stride) {
  const auto reads = int64_t(sharedTensors_.size()),
             bytes = bytesOf(k_.storedType(sharedTensors_[0], lanesAt({})));
  Value place = l_.index(0);
  if (const int64_t steps = s_.prefetch.copiesAhead() + 1; steps > 1)
    place = l_.mul(l_.rem(l_.div(l_.sub(first, begin_), l_.index(stride)), l_.index(steps)),
                   l_.index(s_.shared * reads * bytes * k_.threads()));
  return sharedBytesFrom(copiedBytes(s_, reads), place, bytes);
}

/// Returns the address of a piece, `offset` bytes of each thread from the beginning of a slot that has
/// `slotBytes` of each.
Value TeamLowering::sharedAt(Value place, Value slot, int64_t slotBytes, int64_t offset) {
  const auto type = place.getType(), byte = Type(l_.b.getI8Type());
  Value before = l_.mul(slot, l_.index(slotBytes * k_.threads()));
  Value word = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), before);
  Value begin = LLVM::GEPOp::create(l_.b, l_.loc, type, byte, place, ValueRange{word});
  return LLVM::GEPOp::create(l_.b, l_.loc, type, byte, begin,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset * k_.threads())});
}

Value TeamLowering::loadPieces(Value place, Value slot, int64_t slotBytes, int64_t offset, Type type) {
  const int64_t bytes = bytesOf(type), piece = pieceOf(bytes);
  auto load = [&](int64_t at, Type part) -> Value {
    return LLVM::LoadOp::create(l_.b, l_.loc, part, sharedAt(place, slot, slotBytes, offset + at),
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

void TeamLowering::storePieces(Value place, Value slot, int64_t slotBytes, int64_t offset, Value v) {
  const int64_t bytes = bytesOf(v.getType()), piece = pieceOf(bytes), parts = bytes / piece;
  auto store = [&](int64_t at, Value part) {
    LLVM::StoreOp::create(l_.b, l_.loc, part, sharedAt(place, slot, slotBytes, offset + at), unsigned(piece));
  };
  if (parts == 1) return store(0, v);
  const int64_t each = cast<VectorType>(v.getType()).getNumElements() / parts;
  for (int64_t i = 0; i < parts; ++i)
    store(i * piece, vector::ExtractStridedSliceOp::create(l_.b, l_.loc, v, i * each, each, 1));
}

//===-- Along a run -----------------------------------------------------------------===//

/// Runs `step` for all accesses in shared memory, `together` at a time: in a loop while every thread has one,
/// then for those that may be behind the end.
Values TeamLowering::overShared(int64_t together, Values running,
                                llvm::function_ref<void(ArrayRef<Position>, Values&)> step) {
  auto known = Loops::constant(peels_.empty() ? vectorsOfRun() : leastVectors());
  const int64_t whole = known ? std::clamp<int64_t>(*known / place_.team - s_.tile, 0, s_.shared) : 0;
  const int64_t looped = whole / together * together;
  auto at = [&](Value slot, bool inside) {
    Value access = l_.mul(l_.add(slot, l_.index(s_.tile)), l_.index(place_.team));
    Position p = positionAt(l_.add(place_.lane, access), inside);
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
  for (int64_t slot = whole; slot < s_.shared; ++slot) step(at(l_.index(slot), false), running);
  return running;
}

/// Begins the copies of a run. Accesses that cp.async cannot copy (two bytes, or not aligned) go through
/// registers.
void TeamLowering::copyRun(const Replica& replica, Value first, int64_t stride) {
  if (sharedTensors_.empty()) return;
  const Value run = sharedRunOf(first, stride);
  const Type type = k_.storedType(sharedTensors_[0], lanesAt({}));
  const int64_t bytes = bytesOf(type), piece = pieceOf(bytes),
                slotBytes = int64_t(sharedTensors_.size()) * bytes;
  const bool copies = peels_.empty() && piece >= kLeastCopied;
  auto copy = [&](const Position& p) {
    for (auto [i, t] : llvm::enumerate(sharedTensors_)) {
      Value element = f_.address(t, alongRun(replica.at, p));
      for (int64_t at = 0; at < bytes; at += piece)
        copyToShared(l_.b, l_.loc, sharedAt(run, p.slot, slotBytes, int64_t(i) * bytes + at),
                     globalAddress(t, l_.add(element, l_.index(at / bytesOf(f_.stored(t))))), piece);
    }
  };
  auto move = [&](ArrayRef<Position> positions) {
    Values loaded;
    for (const Position& p : positions)
      for (TensorOp t : sharedTensors_)
        loaded.push_back(loadStored(t, alongRun(replica.at, p), lanesAt(p), replica.index));
    auto next = loaded.begin();
    for (const Position& p : positions)
      for (size_t i = 0; i < sharedTensors_.size(); ++i)
        storePieces(run, p.slot, slotBytes, int64_t(i) * bytes, *next++);
  };
  overShared(copies || s_.vector > 1 ? 4 : 8, {}, [&](ArrayRef<Position> positions, Values&) {
    k_.storeWhere(k_.both(replica.active, positions[0].inside), [&] {
      if (!copies) return move(positions);
      for (const Position& p : positions) copy(p);
    });
  });
}

/// Returns an access of the step's run in the statistics type; zero outside of the run.
Value TeamLowering::loadShared(TensorOp t, const Position& p, Value condition) {
  const Type type = k_.storedType(t, lanesAt(p));
  const int64_t bytes = bytesOf(type), which = llvm::find(sharedTensors_, t) - sharedTensors_.begin();
  auto load = [&] {
    return f_.widened(
        t, loadPieces(sharedRun_, p.slot, int64_t(sharedTensors_.size()) * bytes, which * bytes, type));
  };
  return condition ? l_.when(condition, l_.zero(k_.vectorType()), [&] { return Values{load()}; })[0] : load();
}

/// Runs a sweep over these accesses, after those in registers, and stores its outputs at once.
void TeamLowering::alongShared(Sweep& s, MutableArrayRef<Replica> replicas, Values& sums) {
  if (!s_.shared) return;
  storePending(s);
  const int64_t elements = s_.vector * std::max<int64_t>(1, int64_t(sharedTensors_.size()));
  const int64_t together = std::clamp<int64_t>((peels_.empty() ? kTogether : kTogether / 2) / elements, 1, 4);
  const Values zeros(sums.size(), l_.zero(k_.vectorType()));
  Values own = overShared(together, zeros, [&](ArrayRef<Position> positions, Values& running) {
    SmallVector<Values> terms(positions.size(), zeros);
    for (auto [p, term] : llvm::zip(positions, terms)) element(s, replicas, [&](int64_t) { return p; }, term);
    storePending(s);
    for (auto [k, v] : llvm::enumerate(running)) {
      SmallVector<Value> parts;
      for (const Values& term : terms) parts.push_back(term[k]);
      v = l_.addf(v, l_.tree(parts));
    }
  });
  for (auto [sum, v] : llvm::zip(sums, own)) sum = l_.addf(sum, v);
}

//===-- Sums per feature ------------------------------------------------------------===//

void TeamLowering::addShared(size_t partial, const Position& p, Value v) {
  const int64_t bytes = bytesOf(k_.vectorType()), slotBytes = int64_t(partials_.size()) * bytes;
  const int64_t offset = int64_t(partial) * bytes;
  Value before = loadPieces(sharedSums_, p.slot, slotBytes, offset, k_.vectorType());
  storePieces(sharedSums_, p.slot, slotBytes, offset, l_.addf(before, v));
}

/// Adds them to the task's partials, as what is in registers, and clears them.
void TeamLowering::flushShared() {
  if (!sharedSums_) return;
  const int64_t bytes = bytesOf(k_.vectorType()), slotBytes = int64_t(partials_.size()) * bytes;
  const int64_t lanes = k_.lanes();
  overShared(1, {}, [&](ArrayRef<Position> positions, Values&) {
    const Position& at = positions[0];
    k_.storeWhere(at.inside, [&] {
      for (auto [p, t] : llvm::enumerate(partials_)) {
        Value address = f_.address(t, {.feature = l_.add(runBegin_, at.offset), .chunk = f_.task()});
        Value sum = loadPieces(sharedSums_, at.slot, slotBytes, int64_t(p) * bytes, k_.vectorType());
        f_.store(t, address, l_.addf(f_.load(t, address, lanes, {}), sum), {});
        storePieces(sharedSums_, at.slot, slotBytes, int64_t(p) * bytes, l_.zero(k_.vectorType()));
      }
    });
  });
}

}  // namespace normc::codegen::cuda
