// Outputs past the caches whose runs begin inside cache lines, with layout channels_first.
//
// A non-temporal store of a part of a line costs more than an ordinary one. Where the runs of a piece follow
// each other in memory, a step writes them one after another into a stage in the first-level cache; what
// fills whole lines goes from there to memory, and the rest waits for the next step.
#include "codegen/targets/cpu/lower/Sweep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

/// The features of a step, whose runs fit in kStageBytes.
static constexpr int64_t kStaged = 2, kStageBytes = 8 << 10;

static int64_t bytesOf(TensorOp t) { return t.getType().getIntOrFloatBitWidth() / 8; }

void PhaseLowering::allocateStage(SlabOp s) {
  if (!pastCaches_) return;
  for (auto sweep : s.getOps<SweepOp>())
    for (auto name : sweep.getWrites().getAsRange<FlatSymbolRefAttr>()) {
      TensorOp t = f_.tensor(name.getValue());
      const int64_t elements = (kStageBytes + 2 * kCacheLine) / bytesOf(t);
      stage_ = memref::AllocaOp::create(l_.b, l_.loc, MemRefType::get({elements}, f_.stored(t)),
                                        l_.b.getI64IntegerAttr(kCacheLine));
    }
}

/// True at run time if the output of the sweep goes past the caches and is staged; null: it never is.
Value PhaseLowering::canStage(Sweep& s) {
  if (!stage_ || !inLarge_ || s.writes.size() != 1) return {};
  TensorOp t = s.writes[0];
  auto both = [&](Value a, Value b) -> Value { return arith::AndIOp::create(l_.b, l_.loc, a, b); };
  auto atMost = [&](Value n, Value most) { return l_.isFalse(l_.less(most, n)); };
  Value fits = both(atMost(l_.index(kCacheLine / bytesOf(t)), f_.rows()),
                    atMost(f_.rows(), l_.index(kStageBytes / kStaged / bytesOf(t))));
  Value whole = both(f_.isDense(t), atMost(f_.rows(), piece_->rows));
  return both(both(pastCaches_, l_.isFalse(nonTemporal_)), both(whole, fits));
}

void PhaseLowering::storeStaged(Sweep& s, size_t replica, Value offset, Value stored, Value mask) {
  Value at = l_.add(l_.add(s.stage->begin, l_.mul(l_.index(int64_t(replica)), s.stage->pitch)), offset);
  if (!isa<VectorType>(stored.getType()))
    memref::StoreOp::create(l_.b, l_.loc, stored, s.stage->memory, at);
  else if (mask)
    vector::MaskedStoreOp::create(l_.b, l_.loc, s.stage->memory, ValueRange{at}, mask, stored);
  else
    vector::StoreOp::create(l_.b, l_.loc, stored, s.stage->memory, ValueRange{at});
}

void PhaseLowering::writeStaged(Sweep& s) {
  TensorOp t = s.writes[0];
  const int64_t line = kCacheLine / bytesOf(t);
  const Value none = l_.index(0), features = f_.groupWidth(Axis::Group);
  auto vectorAt = [&](Value at) -> Value {
    return vector::LoadOp::create(l_.b, l_.loc, VectorType::get({line}, f_.stored(t)), stage_,
                                  ValueRange{at});
  };
  // Elements from `begin` to `end` of the stage, one by one: parts of lines at the ends of the piece.
  auto single = [&](Value origin, Value begin, Value end) {
    l_.forEach(begin, end, 1, [&](Value i) {
      f_.storeStored(t, l_.add(origin, i), memref::LoadOp::create(l_.b, l_.loc, stage_, i));
    });
  };
  // Running: the element of the tensor at the beginning of the stage, which is that of a line; how many
  // elements the stage has; how many of the first line are another piece's.
  auto steps = [&](Value first, Value last, int64_t count, ValueRange from) {
    return l_.forEach(first, last, count, from, [&](Value feature, ValueRange running) {
      const Value origin = running[0], begin = running[1], others = running[2];
      s.stage = Stage{.memory = stage_, .begin = begin, .pitch = piece_->rows};
      this->features(s, feature, count);
      s.stage.reset();
      Value filled = l_.add(begin, l_.mul(piece_->rows, l_.index(count))), whole = l_.roundDown(filled, line);
      Value lines = l_.select(l_.less(none, others), l_.index(line), none);
      single(origin, others, lines);
      l_.forEach(lines, whole, line, [&](Value i) {
        f_.storeStored(t, l_.add(origin, i), vectorAt(i), {}, /*nonTemporal=*/true);
      });
      vector::StoreOp::create(l_.b, l_.loc, vectorAt(whole), stage_, ValueRange{none});
      return Values{l_.add(origin, whole), l_.sub(filled, whole), none};
    });
  };
  Value first = f_.address(t, piece_->at);
  Value others = l_.div(l_.rem(f_.addressOf(t, first), l_.index(kCacheLine)), l_.index(bytesOf(t)));
  Value pairs = l_.roundDown(features, kStaged);
  Values running = steps(none, pairs, kStaged, Values{l_.sub(first, others), others, others});
  running = steps(pairs, features, 1, running);
  single(running[0], none, running[1]);
}

}  // namespace normc::codegen
