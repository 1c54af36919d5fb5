// Folds of chunks, divided among the threads of a block: a chain of hundreds of loads and additions for each
// feature would take longer than many a kernel before it.
//
// A block has neighbouring features, and for each of them as many threads as the launch has `slices`: a warp
// reads the partials of neighbouring features. Thread s of a feature folds the chunks s, s + slices, ...,
// several loads at once. The parts are then merged in pairs through shared memory. The first thread of the
// feature goes on with the slab, the others only fold. The order depends on the number of chunks alone.
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Returns the chunks whose partials a thread loads before it uses the first: all of its own if these are
/// few, else as many in each trip to memory.
static int64_t foldedTogether(ArrayRef<FoldOp> folds, int64_t chunks, int64_t slices) {
  size_t reads = 0;
  for (FoldOp fold : folds) reads += FoldOp(fold).getReads().size();
  const int64_t own = llvm::divideCeil(chunks, slices), most = reads <= 2 ? 10 : 8;
  return llvm::divideCeil(own, llvm::divideCeil(own, most));
}

void TeamLowering::foldsInParts(SlabOp s, ArrayRef<FoldOp> folds) {
  const int64_t slices = k_.launch.slices, columns = k_.threads() / slices;
  Value column = l_.rem(k_.thread, l_.index(columns)), slice = l_.div(k_.thread, l_.index(columns));
  l_.forEach(begin_, end_, columns, [&](Value first) {
    Value feature = l_.add(first, column), inside = l_.less(feature, end_);
    Replicas replicas(1);
    Replica& own = replicas[0];
    own.values = shared_;
    own.at.feature = l_.min(feature, l_.sub(end_, l_.index(1)));  // all threads reach the barriers
    own.at.chunk = f_.task();
    for (auto constant : s.getOps<arith::ConstantOp>()) scalarOp(*constant, own);
    const Values merged = mergedParts(folds, own, foldedPart(folds, own, slice), slice);
    k_.storeWhere(l_.both(k_.isZero(slice), inside), [&] {
      size_t next = 0;
      for (FoldOp fold : folds) {
        folded_[fold] = Values(ArrayRef(merged).slice(next, fold.getNumResults()));
        next += fold.getNumResults();
      }
      body(s, replicas);
      folded_.clear();
    });
    k_.barrier();  // the next features use the same memory
  });
}

/// Returns the running values of all folds over the thread's share of the chunks.
Values TeamLowering::foldedPart(ArrayRef<FoldOp> folds, Replica& own, Value slice) {
  const int64_t slices = k_.launch.slices, together = foldedTogether(folds, s_.chunks, slices);
  Value extent = f_.chunks(*FoldOp(folds[0]).getChunkOf()), last = l_.sub(extent, l_.index(1));
  Values init;
  for (FoldOp fold : folds)
    for (Value v : fold.getInit()) init.push_back(mapped(v, own.values));
  return l_.forEach(slice, extent, slices * together, init, [&](Value begin, ValueRange running) {
    Values positions, insides;
    SmallVector<Values> elements;
    for (int64_t i = 0; i < together; ++i) {
      Value position = l_.add(begin, l_.index(i * slices));
      insides.push_back(i ? l_.less(position, extent) : Value());
      positions.push_back(i ? l_.min(position, last) : position);
      for (FoldOp fold : folds) elements.push_back(foldElements(fold, own, positions.back()));
    }
    Values next(running);
    for (int64_t i = 0; i < together; ++i) {
      size_t first = 0;
      for (auto [f, fold] : llvm::enumerate(folds)) {
        auto values = MutableArrayRef(next).slice(first, FoldOp(fold).getNumResults());
        const Values after =
            foldStep(fold, own, positions[i], values, elements[size_t(i) * folds.size() + f]);
        for (auto [v, one] : llvm::zip(values, after)) v = insides[i] ? l_.select(insides[i], one, v) : one;
        first += values.size();
      }
    }
    return next;
  });
}

/// Returns the running values of all threads of a feature together, in its first thread.
Values TeamLowering::mergedParts(ArrayRef<FoldOp> folds, Replica& own, Values parts, Value slice) {
  const int64_t slices = k_.launch.slices, columns = k_.threads() / slices;
  SmallVector<Value> memory;
  for (Value v : parts) memory.push_back(k_.shared(k_.threads(), v.getType()));
  for (int64_t half = slices / 2; half > 0; half /= 2) {
    for (auto [v, place] : llvm::zip(parts, memory))
      memref::StoreOp::create(l_.b, l_.loc, v, place, k_.thread);
    k_.barrier();
    // Every thread merges, to keep the warps together; only the lower halves count.
    Value other = l_.rem(l_.add(k_.thread, l_.index(half * columns)), l_.index(k_.threads()));
    size_t first = 0;
    for (FoldOp fold : folds) {
      auto values = MutableArrayRef(parts).slice(first, fold.getNumResults());
      Values theirs;
      for (size_t i = 0; i < fold.getReads().size(); ++i)
        theirs.push_back(memref::LoadOp::create(l_.b, l_.loc, memory[first + i], other));
      llvm::copy(foldStep(fold, own, slice, values, theirs), values.begin());
      first += values.size();
    }
    if (half > 1) k_.barrier();
  }
  return parts;
}

}  // namespace normc::codegen::cuda
