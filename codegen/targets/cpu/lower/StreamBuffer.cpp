#include "codegen/targets/cpu/lower/StreamBuffer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "runtime/abi/MemoryUnits.h"

using namespace mlir;

namespace normc::codegen {

/// Returns the elements from the sums of one partial to those of the next.
static int64_t pitchOf(Type statistics) {
  return kStreamTile + kApart * 8 / statistics.getIntOrFloatBitWidth();
}

StreamBuffer::StreamBuffer(Loops& l, AccessLowering& f, size_t partials, TensorOp x, int64_t lanes)
    : l_(l), f_(f), lanes_(lanes) {
  const int64_t size = elementBytes(f.statistics());
  const int64_t elements = int64_t(partials) * pitchOf(f.statistics()) + lanes;
  memory_ = StackMemory(l, elements + kPage / size, f.statistics(), kCacheLine);
  // The sums begin kApart behind the offset of x within a page, rounded to cache lines.
  Value from = memref::ExtractAlignedPointerAsIndexOp::create(l.b, l.loc, f.pointer(x));
  Value distance = l.add(l.sub(from, memory_.address(l)), l.index(kApart));
  Value lines = arith::AndIOp::create(l.b, l.loc, distance, l.index(kPage - kCacheLine));
  begin_ = l.div(lines, l.index(size));
}

Value StreamBuffer::at(size_t partial, Value feature) {
  return l_.add(begin_, l_.add(feature, l_.index(int64_t(partial) * pitchOf(f_.statistics()))));
}

void StreamBuffer::add(size_t partial, Value feature, Value term, Value mask) {
  auto vector = dyn_cast<VectorType>(term.getType());
  Value place = at(partial, feature), before = memory_.load(l_, place, vector ? vector.getDimSize(0) : 0);
  Value sum = l_.addf(before, term);
  memory_.store(l_, place, mask ? l_.select(mask, sum, before) : sum);
}

void StreamBuffer::clear(size_t partials, Value width) {
  Value zeros = l_.zero(VectorType::get({lanes_}, f_.statistics()));
  for (size_t k = 0; k < partials; ++k)
    l_.forEach(l_.index(0), width, lanes_, [&](Value j) { memory_.store(l_, at(k, j), zeros); });
}

void StreamBuffer::flush(ArrayRef<TensorOp> partials, Value begin, Value width) {
  Value whole = l_.roundDown(width, lanes_);
  for (auto [k, t] : llvm::enumerate(partials)) {
    Value base = f_.address(t, {.feature = begin});
    auto add = [&](Value j, int64_t lanes) {
      Value address = l_.add(base, j);
      Value sum = l_.addf(f_.load(t, address, lanes, {}), memory_.load(l_, at(k, j), lanes));
      f_.store(t, address, sum, {});
    };
    l_.forEach(l_.index(0), whole, lanes_, [&](Value j) { add(j, lanes_); });
    l_.forEach(whole, width, 1, [&](Value j) { add(j, 0); });
  }
}

}  // namespace normc::codegen
