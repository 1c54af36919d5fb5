// Copies of runs to shared memory, and the accesses of a thread there.
#include "codegen/targets/cuda/SharedRuns.h"

#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Ptx.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// The least that cp.async copies.
static constexpr int64_t kLeastCopied = 4;

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
  sumsAt_ = pieces_.begin(l_.index(copiedBytes(k_.s, reads) + runs), k_.thread, bytesOf(k_.vectorType()));
  l_.forEach(l_.index(0), l_.index(k_.s.shared), 1, [&](Value slot) {
    for (int64_t p = 0; p < sums; ++p) setSum(size_t(p), {.slot = slot}, l_.zero(k_.vectorType()));
  });
}

//===-- Places ----------------------------------------------------------------------===//

Value globalAddress(KernelThread& k, TensorOp t, Value element) {
  Loops& l = k.l;
  auto generic = LLVM::LLVMPointerType::get(l.b.getContext()),
       global = LLVM::LLVMPointerType::get(l.b.getContext(), kGlobalSpace);
  Value base = k.toI64(memref::ExtractAlignedPointerAsIndexOp::create(l.b, l.loc, k.f.pointer(t)));
  Value begin =
      LLVM::AddrSpaceCastOp::create(l.b, l.loc, global, LLVM::IntToPtrOp::create(l.b, l.loc, generic, base));
  return LLVM::GEPOp::create(l.b, l.loc, global, k.f.stored(t), begin, ValueRange{k.toI64(element)});
}

/// Returns the address of this thread's part of the run of a step.
Value SharedRuns::runOf(Value step) {
  const int64_t bytes = bytesOf(k_.storedType(tensors_[0], k_.lanes()));
  Value place = l_.index(0);
  if (const int64_t steps = k_.s.prefetch.copiesAhead() + 1; steps > 1)
    place = l_.mul(l_.rem(step, l_.index(steps)), l_.index(k_.s.shared * reads() * bytes * k_.threads()));
  return pieces_.begin(l_.add(l_.index(copiedBytes(k_.s, reads())), place), k_.thread, bytes);
}

//===-- Along a run -----------------------------------------------------------------===//

Values SharedRuns::forEach(int64_t together, Values running, Combiners combiners,
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
  auto between = [&](Value first, Value last, ValueRange from) {
    return l_.forEach(first, last, together, from, [&](Value slot, ValueRange now) {
      Values next(now);
      SmallVector<Position> positions;
      for (int64_t u = 0; u < together; ++u) positions.push_back(at(l_.add(slot, l_.index(u)), true));
      step(positions, next);
      return next;
    });
  };
  running = running.empty()
                ? between(l_.index(0), l_.index(looped), running)
                : l_.inLevels(l_.index(0), l_.index(looped), together, running, between, {}, combiners);
  SmallVector<Position> rest;
  for (int64_t slot = looped; slot < whole; ++slot) rest.push_back(at(l_.index(slot), true));
  if (!rest.empty()) step(rest, running);
  for (int64_t slot = whole; slot < k_.s.shared; ++slot) step(at(l_.index(slot), false), running);
  return running;
}

void SharedRuns::copy(const Replica& replica, Value step) {
  const Value run = runOf(step);
  const Type type = k_.storedType(tensors_[0], k_.lanes());
  const int64_t bytes = bytesOf(type), piece = SharedPieces::pieceOf(bytes), slotBytes = reads() * bytes;
  const bool copies = !access_.anywhere() && piece >= kLeastCopied;
  auto copy = [&](const Position& p) {
    for (auto [i, t] : llvm::enumerate(tensors_)) {
      Value element = f_.address(t, access_.along(replica.at, p));
      for (int64_t at = 0; at < bytes; at += piece)
        copyToShared(l_.b, l_.loc, pieces_.at(run, p.slot, slotBytes, int64_t(i) * bytes + at),
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
        pieces_.store(run, p.slot, slotBytes, int64_t(i) * bytes, *next++);
  };
  forEach(copies || k_.s.vector > 1 ? 4 : 8, {}, {}, [&](ArrayRef<Position> positions, Values&) {
    k_.storeWhere(l_.both(replica.active, positions[0].inside), [&] {
      if (!copies) return move(positions);
      for (const Position& p : positions) copy(p);
    });
  });
}

Value SharedRuns::load(TensorOp t, const Position& p, Value condition) {
  const Type type = k_.storedType(t, access_.lanes(p));
  const int64_t bytes = bytesOf(type), which = llvm::find(tensors_, t) - tensors_.begin();
  auto load = [&] { return f_.widened(t, pieces_.load(run_, p.slot, reads() * bytes, which * bytes, type)); };
  return condition ? l_.when(condition, l_.zero(k_.vectorType()), [&] { return Values{load()}; })[0] : load();
}

//===-- Sums per feature ------------------------------------------------------------===//

Value SharedRuns::sum(size_t which, const Position& p) {
  const int64_t bytes = bytesOf(k_.vectorType());
  return pieces_.load(sumsAt_, p.slot, sums_ * bytes, int64_t(which) * bytes, k_.vectorType());
}

void SharedRuns::setSum(size_t which, const Position& p, Value v) {
  const int64_t bytes = bytesOf(k_.vectorType());
  pieces_.store(sumsAt_, p.slot, sums_ * bytes, int64_t(which) * bytes, v);
}

}  // namespace normc::codegen::cuda
