// Sums between the threads of a block: by shuffles, and through shared memory.
#include "codegen/targets/cuda/SumTree.h"

#include "codegen/targets/cuda/Ptx.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace normc::codegen::cuda {

SumTree::SumTree(KernelThread& thread) : k_(thread), l_(thread.l), f_(thread.f) {
  if (k_.gridded()) gridBarrier_.emplace(l_, f_, k_.launch.grid, k_.threads(), k_.rank, k_.thread);
  if (k_.clustered()) meeting_.emplace(k_);
  if (k_.s.team <= kWarp || k_.taskBlocks() > 1) return;
  const Type type = l_.b.getI64Type();
  Value one = LLVM::ConstantOp::create(l_.b, l_.loc, type, 1),
        none = LLVM::ConstantOp::create(l_.b, l_.loc, type, 0);
  exchanges_ = LLVM::AllocaOp::create(l_.b, l_.loc, LLVM::LLVMPointerType::get(l_.b.getContext()), type, one);
  LLVM::StoreOp::create(l_.b, l_.loc, none, exchanges_);
}

void SumTree::beginStep(Value turn) {
  turn_ = turn;
  exchanged_ = 0;
}

void SumTree::taskBarrier() {
  if (k_.gridded()) {
    arriveAtGrid();
    return waitForGrid();
  }
  if (!k_.clustered()) return k_.barrier();
  arriveAtCluster(l_.b, l_.loc);
  waitForCluster(l_.b, l_.loc);
}

//===-- Runs ------------------------------------------------------------------------===//

void SumTree::overRun(MutableArrayRef<Value> sums, const Place& place, Combiners combiners) {
  if (k_.clustered())
    runOverCluster(sums, combiners);
  else if (k_.gridded())
    runOverGrid(sums, combiners);
  else
    overTeam(sums, place.team, combiners);
}

/// Returns the sum of `team` neighbouring lanes of a warp, with the same bits in all of them.
Value SumTree::overLanes(Value v, int64_t team, Combiner combiner) {
  for (int32_t distance = team / 2; distance > 0; distance /= 2) {
    auto other = gpu::ShuffleOp::create(l_.b, l_.loc, v, distance, kWarp, gpu::ShuffleMode::XOR);
    v = l_.combine(combiner, v, other.getShuffleResult());
  }
  return v;
}

void SumTree::overTeam(MutableArrayRef<Value> sums, int64_t team, Combiners combiners) {
  for (auto [i, v] : llvm::enumerate(sums)) v = overLanes(v, std::min(team, kWarp), of(combiners, i));
  // A shuffle orders no memory accesses, and a neighbour may store where the shift estimate has read.
  if (team <= kWarp) return syncWarp(l_.b, l_.loc);
  const int64_t warps = k_.threads() / kWarp, own = team / kWarp, size = warps * int64_t(sums.size());
  Value memory = k_.shared(alternates_ ? 2 * size : size), place = l_.index(0);
  if (alternates_) {
    Value turn = LLVM::LoadOp::create(l_.b, l_.loc, l_.b.getI64Type(), exchanges_);
    turn = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(), turn);
    place = l_.mul(turn, l_.index(size));
    LLVM::StoreOp::create(l_.b, l_.loc, k_.toI64(l_.sub(l_.index(1), turn)), exchanges_);
  }
  Value warp = l_.div(k_.thread, l_.index(kWarp));
  k_.storeWhere(k_.isZero(l_.rem(k_.thread, l_.index(kWarp))), [&] {
    for (auto [i, v] : llvm::enumerate(sums))
      memref::StoreOp::create(l_.b, l_.loc, v, memory, l_.add(place, l_.add(warp, l_.index(i * warps))));
  });
  k_.barrier();
  Value first = own == warps ? place : l_.add(place, l_.mul(l_.div(warp, l_.index(own)), l_.index(own)));
  for (auto [i, v] : llvm::enumerate(sums)) {
    SmallVector<Value> parts;
    for (int64_t w = 0; w < own; ++w)
      parts.push_back(memref::LoadOp::create(l_.b, l_.loc, memory, l_.add(first, l_.index(i * warps + w))));
    v = l_.tree(parts, of(combiners, i));
  }
}

//===-- Exchange between spans ------------------------------------------------------===//

Value SumTree::nextBuffer(int64_t elements, int64_t count) {
  Value& buffer = buffers_[flip_++ % count];
  if (!buffer) buffer = k_.shared(elements);
  return buffer;
}

void SumTree::store(Value buffer, Value v) {
  for (int64_t e = 0; e < k_.s.vector; ++e)
    memref::StoreOp::create(l_.b, l_.loc, k_.laneOf(v, e), buffer,
                            l_.add(k_.thread, l_.index(e * k_.s.threads)));
}

Value SumTree::load(Value buffer, const Place& place, int64_t unit) {
  return k_.lanesOf([&](int64_t e) -> Value {
    const int64_t at = e * k_.s.threads + unit * place.span;
    return memref::LoadOp::create(l_.b, l_.loc, buffer, l_.add(place.spanLane, l_.index(at)));
  });
}

Value SumTree::total(Value buffer, const Place& place, int64_t stride, Combiner combiner) {
  return k_.lanesOf([&](int64_t e) {
    SmallVector<Value> parts;
    for (int64_t u = 0; u < k_.threads() / place.span; u += stride) {
      const int64_t at = e * k_.s.threads + u * place.span;
      parts.push_back(memref::LoadOp::create(l_.b, l_.loc, buffer, l_.add(place.spanLane, l_.index(at))));
    }
    return l_.tree(parts, combiner);
  });
}

//===-- Units -----------------------------------------------------------------------===//

void SumTree::overUnits(MutableArrayRef<Value> sums, Place& place, Value feature, Value inside,
                        Combiners combiners) {
  if (place.units == 1 || sums.empty()) return;
  overSpans(sums, place, combiners);
  if (k_.gridded()) return unitsOverGrid(sums, place, feature, inside, combiners);
  if (!k_.clustered()) return k_.barrier();
  unitsOverCluster(sums, place, combiners);
}

/// Returns the thread's span in its block.
Value SumTree::unitInBlock(const Place& place) {
  return k_.threads() == place.span ? l_.index(0) : l_.div(k_.thread, l_.index(place.span));
}

/// Replaces the parts by the sums over all spans of the block, in all threads.
void SumTree::overSpans(MutableArrayRef<Value> sums, const Place& place, Combiners combiners) {
  // Over a grid registers are scarce. There the spans of a warp are added by shuffles, which leaves fewer
  // loads.
  const int64_t units = k_.threads() / place.span,
                together = k_.gridded() ? std::max<int64_t>(1, kWarp / place.span) : 1;
  for (auto [i, v] : llvm::enumerate(sums)) {  // one at a time: two buffers and a barrier each
    if (together > 1) v = overSpansOfWarp(v, place, of(combiners, i));
    if (units == together) continue;
    Value buffer = nextBuffer();
    store(buffer, v);
    k_.barrier();
    v = total(buffer, place, together, of(combiners, i));
  }
}

Value SumTree::overSpansOfWarp(Value v, const Place& place, Combiner combiner) {
  return k_.lanesOf([&](int64_t e) {
    Value lane = k_.laneOf(v, e);
    for (int32_t distance = place.span; distance < kWarp; distance *= 2) {
      auto other = gpu::ShuffleOp::create(l_.b, l_.loc, lane, distance, kWarp, gpu::ShuffleMode::XOR);
      lane = l_.combine(combiner, lane, other.getShuffleResult());
    }
    return lane;
  });
}

}  // namespace normc::codegen::cuda
