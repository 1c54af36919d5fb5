#include "codegen/targets/cpu/lower/StagedStores.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "runtime/abi/MemoryUnits.h"

using namespace mlir;

namespace normc::codegen {

/// The features of a step, whose runs fit in kStageBytes.
static constexpr int64_t kStaged = 2, kStageBytes = 8 << 10;

StagedStores::StagedStores(Loops& l, AccessLowering& f, Type stored)
    : l_(l), f_(f), memory_(l, (kStageBytes + 2 * kCacheLine) / elementBytes(stored), stored, kCacheLine) {}

Value StagedStores::serves(TensorOp t, Value rows) {
  auto atMost = [&](Value n, Value most) { return l_.isFalse(l_.less(most, n)); };
  const int64_t bytes = elementBytes(memory_.element());
  Value fits = l_.both(atMost(l_.index(kCacheLine / bytes), f_.rows()),
                       atMost(f_.rows(), l_.index(kStageBytes / kStaged / bytes)));
  Value whole = l_.both(f_.isDense(t), atMost(f_.rows(), rows));
  return l_.both(whole, fits);
}

void StagedStores::store(size_t feature, Value offset, Value stored, Value mask) {
  Value at = l_.add(l_.add(begin_, l_.mul(l_.index(int64_t(feature)), pitch_)), offset);
  memory_.store(l_, at, stored, mask);
}

void StagedStores::write(TensorOp t, const Coordinates& at, Value rows,
                         llvm::function_ref<void(Value, int64_t)> step) {
  const int64_t bytes = elementBytes(memory_.element()), line = kCacheLine / bytes;
  const Value none = l_.index(0), features = f_.groupWidth(Axis::Group);
  pitch_ = rows;
  // Elements from `begin` to `end` of the stage, one by one: parts of lines at the ends of the piece.
  auto single = [&](Value origin, Value begin, Value end) {
    l_.forEach(begin, end, 1, [&](Value i) { f_.storeStored(t, l_.add(origin, i), memory_.load(l_, i)); });
  };
  // Running: the element of the tensor at the beginning of the stage, which is that of a line; how many
  // elements the stage has; how many of the first line are another piece's.
  auto steps = [&](Value first, Value last, int64_t count, ValueRange from) {
    return l_.forEach(first, last, count, from, [&](Value feature, ValueRange running) {
      const Value origin = running[0], others = running[2];
      begin_ = running[1];
      step(feature, count);
      Value filled = l_.add(begin_, l_.mul(rows, l_.index(count))), whole = l_.roundDown(filled, line);
      Value lines = l_.select(l_.less(none, others), l_.index(line), none);
      single(origin, others, lines);
      l_.forEach(lines, whole, line, [&](Value i) {
        f_.storeStored(t, l_.add(origin, i), memory_.load(l_, i, line), {}, /*nonTemporal=*/true);
      });
      memory_.store(l_, none, memory_.load(l_, whole, line));
      return Values{l_.add(origin, whole), l_.sub(filled, whole), none};
    });
  };
  Value first = f_.address(t, at);
  Value others = l_.div(l_.rem(f_.addressOf(t, first), l_.index(kCacheLine)), l_.index(bytes));
  Value pairs = l_.roundDown(features, kStaged);
  Values running = steps(none, pairs, kStaged, Values{l_.sub(first, others), others, others});
  running = steps(pairs, features, 1, running);
  single(running[0], none, running[1]);
}

}  // namespace normc::codegen
