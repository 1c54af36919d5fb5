// Streams: sweeps over rows in the order of memory, a tile of features at a time, whose sums are collected in
// a buffer.
#include "codegen/targets/cpu/CpuSchedule.h"
#include "codegen/targets/cpu/lower/Sweep.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace normc::codegen {

/// The steps of a stream whose sums are collected before they are added to the partials. Steps of one row
/// have half as many, because the schedule does not add their terms first.
static constexpr int64_t kFlushStreamSteps = 16;

void PhaseLowering::allocateBuffer() {
  size_t partials = 0;
  TensorOp input;
  for (auto slab : f_.phase().getOps<SlabOp>())
    if (slab.getKind() == Kind::Stream && !slab.getHead())
      for (auto sweep : slab.getOps<SweepOp>()) {
        partials = std::max(partials, sweep.getPartials().size());
        for (auto name : sweep.getReads().getAsRange<FlatSymbolRefAttr>())
          if (TensorOp t = f_.tensor(name.getValue()); !input && t.isXSized()) input = t;
      }
  if (partials) buffer_.emplace(l_, f_, partials, input, schedule_.getVector());
}

void PhaseLowering::streamSweep(SweepOp op, Value begin, Value end) {
  Sweep s(partsOf(op));
  if (op.getCondition()) end = l_.select(mapped(op.getCondition(), shared_), end, begin);
  int64_t together = slab_.getHead() ? *slab_.getHead() : s.rowsTogether(steps_.rows);
  // The rows of the head are few, and their middle takes many operations: one vector of each is a step.
  llvm::SaveAndRestore vectors(steps_.unroll, slab_.getHead() ? 1 : steps_.unroll);
  // A large call needs long pieces of a row.
  const int64_t columns = steps_.large || schedule_.getWide() ? kStreamTile : cpu::kCachedTile;
  l_.forEach(l_.index(0), f_.features(), columns, [&](Value tile) {
    llvm::SaveAndRestore begins(runBegin_, tile);
    auto features = Loops::constant(f_.features());
    Value width = features && *features % columns == 0
                      ? l_.index(columns)
                      : l_.min(l_.index(columns), l_.sub(f_.features(), tile));
    auto rowsFrom = [&](Value unit, int64_t n) {
      llvm::SaveAndRestore next(next_, unitToPrefetch(unit, n));
      Replicas rows(n);
      for (auto [i, r] : llvm::enumerate(rows)) {
        r.at = unitCoordinates(l_.add(unit, l_.index(i)));
        r.values = shared_;
        hoist(s, r);
      }
      along(s, rows, width, {});
    };
    auto rowsBetween = [&](Value first, Value last, llvm::function_ref<void()> beforeRest) {
      Value most = l_.add(first, l_.roundDown(l_.sub(last, first), together));
      l_.forEach(first, most, together, [&](Value unit) { rowsFrom(unit, together); });
      if (together == 1) return;
      if (beforeRest)
        l_.when(l_.less(most, last), {}, [&] {
          beforeRest();
          return Values();
        });
      l_.forEach(most, last, 1, [&](Value unit) { rowsFrom(unit, 1); });
    };
    if (s.partials.empty() || slab_.getHead()) return rowsBetween(begin, end, {});
    // Two levels: the sums of a few rows are collected in the buffer, which is then added to the partials.
    s.buffered = true;
    const int64_t collected = steps_.rows == 1 ? kFlushStreamSteps / 2 : kFlushStreamSteps * steps_.rows;
    l_.forEach(begin, end, collected, [&](Value first) {
      Value last = l_.min(l_.add(first, l_.index(collected)), end);
      buffer_->clear(s.partials.size(), width);
      rowsBetween(first, last, [&] {
        buffer_->flush(s.partials, tile, width);
        buffer_->clear(s.partials.size(), width);
      });
      buffer_->flush(s.partials, tile, width);
    });
  });
}

}  // namespace normc::codegen
