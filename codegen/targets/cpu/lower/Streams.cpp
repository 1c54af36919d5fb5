// Streams: sweeps over rows in the order of memory, a tile of features at a time, whose sums are collected in
// a buffer.
#include "codegen/targets/cpu/lower/Sweep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

/// The features of a tile in a call that is not large. Then the rows of a step stay in the first-level cache
/// too; a large call needs long pieces of a row instead.
static constexpr int64_t kCachedTile = 512;
/// The least distance within a page, in bytes, between the sums of a stream and x, and between the sums of
/// two partials. A load waits for an earlier store with the same offset in a page, so a store must not be
/// just ahead of a stream of loads.
static constexpr int64_t kApartBytes = 1024;
/// The steps of a stream whose sums are collected before they are added to the partials. Steps of one row
/// have half as many, because the schedule does not add their terms first.
static constexpr int64_t kFlushStreamSteps = 16;

/// Returns the elements from the sums of one partial to those of the next.
static int64_t bufferPitch(Type statistics) {
  return kStreamTile + kApartBytes * 8 / statistics.getIntOrFloatBitWidth();
}

Value PhaseLowering::inBuffer(size_t partial, Value feature) {
  return l_.add(bufferBegin_, l_.add(feature, l_.index(int64_t(partial) * bufferPitch(f_.statistics()))));
}

Value PhaseLowering::loadBuffer(Value at, int64_t lanes) {
  if (!lanes) return memref::LoadOp::create(l_.b, l_.loc, buffer_, at);
  return vector::LoadOp::create(l_.b, l_.loc, VectorType::get({lanes}, f_.statistics()), buffer_,
                                ValueRange{at});
}
void PhaseLowering::storeBuffer(Value at, Value v) {
  if (isa<VectorType>(v.getType()))
    vector::StoreOp::create(l_.b, l_.loc, v, buffer_, ValueRange{at});
  else
    memref::StoreOp::create(l_.b, l_.loc, v, buffer_, at);
}

/// Allocates the buffer on the stack of the phase function. It is a vector longer than a tile, so that tails
/// need no mask.
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
  if (!partials) return;
  int64_t size = f_.statistics().getIntOrFloatBitWidth() / 8;
  int64_t elements = int64_t(partials) * bufferPitch(f_.statistics()) + schedule_.getVector();
  auto type = MemRefType::get({elements + kPage / size}, f_.statistics());
  buffer_ = memref::AllocaOp::create(l_.b, l_.loc, type, l_.b.getI64IntegerAttr(kCacheLine));
  // The sums begin kApartBytes behind the offset of x within a page, rounded to cache lines.
  auto addressOf = [&](Value memory) -> Value {
    return memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, memory);
  };
  Value distance = l_.add(l_.sub(addressOf(f_.pointer(input)), addressOf(buffer_)), l_.index(kApartBytes));
  Value lines = arith::AndIOp::create(l_.b, l_.loc, distance, l_.index(kPage - kCacheLine));
  bufferBegin_ = l_.div(lines, l_.index(size));
}

void PhaseLowering::clearBuffer(Sweep& s, Value width) {
  int64_t lanes = schedule_.getVector();
  Value zeros = l_.zero(VectorType::get({lanes}, f_.statistics()));
  for (size_t k = 0; k < s.partials.size(); ++k)
    l_.forEach(l_.index(0), width, lanes, [&](Value j) { storeBuffer(inBuffer(k, j), zeros); });
}

void PhaseLowering::flushBuffer(Sweep& s, Value width) {
  int64_t lanes = schedule_.getVector();
  Value whole = l_.roundDown(width, lanes);
  for (auto [k, t] : llvm::enumerate(s.partials)) {
    Value base = f_.address(t, {.feature = runBegin_});
    auto add = [&](Value j, int64_t width) {
      Value address = l_.add(base, j);
      f_.store(t, address, l_.addf(f_.load(t, address, width, {}), loadBuffer(inBuffer(k, j), width)), {});
    };
    l_.forEach(l_.index(0), whole, lanes, [&](Value j) { add(j, lanes); });
    l_.forEach(whole, width, 1, [&](Value j) { add(j, 0); });
  }
}

void PhaseLowering::streamSweep(SweepOp op, Value begin, Value end) {
  Sweep s(partsOf(op));
  if (op.getCondition()) end = l_.select(mapped(op.getCondition(), shared_), end, begin);
  int64_t together = slab_.getHead() ? *slab_.getHead() : s.rowsTogether(rowsTogether());
  const int64_t columns = inLarge_ ? kStreamTile : kCachedTile;
  l_.forEach(l_.index(0), f_.features(), columns, [&](Value tile) {
    runBegin_ = tile;
    auto features = Loops::constant(f_.features());
    Value width = features && *features % columns == 0
                      ? l_.index(columns)
                      : l_.min(l_.index(columns), l_.sub(f_.features(), tile));
    auto rowsFrom = [&](Value unit, int64_t n) {
      markNext(unit, n);
      Replicas rows(n);
      for (auto [i, r] : llvm::enumerate(rows)) {
        r.at = unitCoordinates(l_.add(unit, l_.index(i)));
        r.values = shared_;
        hoist(s, r);
      }
      along(s, rows, width, {});
    };
    auto rowsBetween = [&](Value first, Value last) {
      Value most = l_.add(first, l_.roundDown(l_.sub(last, first), together));
      l_.forEach(first, most, together, [&](Value unit) { rowsFrom(unit, together); });
      if (together > 1) l_.forEach(most, last, 1, [&](Value unit) { rowsFrom(unit, 1); });
    };
    if (s.partials.empty() || slab_.getHead()) return rowsBetween(begin, end);
    // Two levels: the sums of a few rows are collected in the buffer, which is then added to the partials.
    s.buffered = true;
    const int64_t collected =
        rowsTogether() == 1 ? kFlushStreamSteps / 2 : kFlushStreamSteps * rowsTogether();
    l_.forEach(begin, end, collected, [&](Value first) {
      Value last = l_.min(l_.add(first, l_.index(collected)), end);
      clearBuffer(s, width);
      rowsBetween(first, last);
      flushBuffer(s, width);
    });
  });
}

}  // namespace normc::codegen
