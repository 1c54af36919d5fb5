// Runs that begin anywhere: rows of an odd number of features, or a tensor that
// does not begin where accesses may.
//
//   address   | . . . 3 | 4 5 6 7 | 8 9 10 11 | 12 . . . |     of x, in accesses
//   element         0     1 2 3 4   5 6  7  8    9
//             \_ head _/ \______ accesses ____/ \_ tail _/     of a run of ten
//
// Whole accesses read and write the middle. A few elements
// at both ends are accessed one by one, a thread each. The head is chosen for x. Other
// X-sized tensors usually have the same alignment. One that does not is accessed by
// elements, which is decided once a run. Vectors along the run (scale, bias) begin
// somewhere inside an access: two or three aligned ones are read and
// shifted, and the ends are long enough that none of them reaches beyond the vector.
#include "codegen/targets/cuda/PeeledRuns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Bytes of one aligned load of a vector that is shifted.
static constexpr int64_t kLoadBytes = 16;

/// Returns how many loads of `kLoadBytes` hold `vector` elements wherever they begin.
static int64_t loadsOf(TensorOp t, int64_t vector) {
  int64_t each = kLoadBytes / elementBytes(t.getType());
  return llvm::divideCeil(vector + each - 1, each);
}

static bool isShifted(TensorOp t) {
  return !t.isXSized() && t.hasAxis(Axis::Feature) && isa<FloatType>(t.getType()) &&
         elementBytes(t.getType()) <= 4;
}

/// Returns the index of the element in an array that begins at address 0.
Value PeeledRuns::elementIndex(TensorOp t, Value address) {
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, f_.pointer(t));
  return l_.add(l_.div(base, l_.index(elementBytes(t.getType()))), address);
}

TensorOp PeeledRuns::leading() {
  return *llvm::find_if(f_.kernel().getOps<TensorOp>(), [](TensorOp t) { return t.isXSized(); });
}

/// Finds the head and the number of accesses of each run.
void PeeledRuns::beginStep(SlabOp slab, ArrayRef<Coordinates> units) {
  peels_.clear();
  const TensorOp first = leading();
  SmallVector<TensorOp> others;
  slackBefore_ = slackAfter_ = 0;
  for (auto sweep : slab.sweeps())
    for (ArrayAttr names : {sweep.getReads(), sweep.getWrites()})
      for (TensorOp t : f_.tensors(names)) {
        if (t.isXSized() && t != first && !llvm::is_contained(others, t)) others.push_back(t);
        if (!isShifted(t) || !f_.featuresLast()) continue;
        int64_t each = kLoadBytes / elementBytes(t.getType());
        slackBefore_ = std::max(slackBefore_, each - 1);
        slackAfter_ = std::max(slackAfter_, loadsOf(t, k_.s.vector) * each - k_.s.vector);
      }
  const Value vector = l_.index(k_.s.vector), before = l_.index(slackBefore_), after = l_.index(slackAfter_);
  for (const Coordinates& unit : units) {
    const Coordinates start = along(unit, {.offset = l_.index(0)});
    auto place = [&](TensorOp t) { return l_.rem(elementIndex(t, f_.address(t, start)), vector); };
    const Value x = place(first);
    Peel peel;
    // The least number from `slackBefore_` on after which x is aligned.
    peel.head = l_.add(before, l_.rem(l_.sub(l_.index(0), l_.add(x, before)), vector));
    Value rest = l_.sub(run_.width, l_.add(peel.head, after));
    peel.vectors = l_.select(l_.less(l_.index(0), rest), l_.div(rest, vector), l_.index(0));
    for (TensorOp t : others)
      peel.congruent[t] = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, place(t), x);
    peels_.push_back(std::move(peel));
  }
}

Value PeeledRuns::count(int64_t replica) { return anywhere() ? peels_[replica].vectors : whole(); }

Value PeeledRuns::leastCount() {
  if (!anywhere()) return whole();
  Value ends = l_.index(slackBefore_ + slackAfter_ + k_.s.vector - 1);
  return l_.select(l_.less(ends, run_.width), l_.div(l_.sub(run_.width, ends), l_.index(k_.s.vector)),
                   l_.index(0));
}

int64_t PeeledRuns::ends() const {
  if (!anywhere()) return 0;
  return llvm::divideCeil(slackBefore_ + slackAfter_ + 2 * (k_.s.vector - 1), run_.place.team);
}

Position PeeledRuns::end(int64_t i, int64_t replica) {
  const Peel& peel = peels_[replica];
  Value own = l_.add(run_.place.lane, l_.index(i * run_.place.team));
  Value element =
      l_.select(l_.less(own, peel.head), own, l_.add(own, l_.mul(peel.vectors, l_.index(k_.s.vector))));
  Position p{
      .inside = l_.less(element, run_.width), .index = k_.s.tile > 0 ? k_.s.tile + i : -1, .single = true};
  p.offset = l_.min(element, l_.sub(run_.width, l_.index(1)));
  return p;
}

//===-- Loads -----------------------------------------------------------------------===//

Value PeeledRuns::loadStored(TensorOp t, const Coordinates& at, int64_t lanes, int64_t replica, Whole whole) {
  Value address = f_.address(t, at);
  if (!anywhere() || !lanes) return f_.loadStored(t, address, lanes);
  if (!t.isXSized()) return loadVector(t, address, lanes);
  auto load = [&](bool whole) { return f_.loadStored(t, address, lanes, whole ? alignment(t) : 0); };
  Value congruent = whole ? Value() : isWhole(t, replica);
  if (!congruent) return load(whole.value_or(true));
  Value none = l_.zero(k_.storedType(t, lanes));
  Value single = l_.when(l_.isFalse(congruent), none, [&] { return Values{load(false)}; })[0];
  return l_.when(congruent, single, [&] { return Values{load(true)}; })[0];
}

Value PeeledRuns::isWhole(TensorOp t, int64_t replica) {
  return anywhere() ? peels_[replica].congruent.lookup(t) : Value();
}

std::optional<int64_t> PeeledRuns::alignment(TensorOp t) const {
  return anywhere() ? std::optional(k_.s.vector * elementBytes(t.getType())) : std::nullopt;
}

/// Loads from a vector of features.
Value PeeledRuns::loadVector(TensorOp t, Value address, int64_t lanes) {
  return isShifted(t) ? loadShifted(t, address) : f_.loadStored(t, address, lanes, 0);
}

/// Returns the elements from any `address` on by aligned loads: as words, shifted by 0 to 3 words and a half.
Value PeeledRuns::loadShifted(TensorOp t, Value address) {
  OpBuilder& b = l_.b;
  const int64_t each = kLoadBytes / elementBytes(t.getType()), perWord = 4 / elementBytes(t.getType()),
                loads = loadsOf(t, k_.s.vector);
  const int64_t needed = llvm::divideCeil(k_.s.vector, perWord);
  auto i32 = b.getI32Type();
  Value phase = l_.rem(elementIndex(t, address), l_.index(each)), first = l_.sub(address, phase);
  Values words;
  for (int64_t i = 0; i < loads; ++i) {
    Value loaded = f_.loadStored(t, l_.add(first, l_.index(i * each)), each, kLoadBytes);
    Value four = vector::BitCastOp::create(b, l_.loc, VectorType::get({4}, i32), loaded);
    for (int64_t w = 0; w < 4; ++w) words.push_back(vector::ExtractOp::create(b, l_.loc, four, w));
  }
  auto bit = [&](int64_t elements) {  // whether the phase contains `elements`
    return l_.isFalse(k_.isZero(l_.rem(l_.div(phase, l_.index(elements)), l_.index(2))));
  };
  auto drop = [&](int64_t count) {
    Value yes = bit(count * perWord);
    Values moved;
    for (size_t i = 0; i + count < words.size(); ++i)
      moved.push_back(l_.select(yes, words[i + count], words[i]));
    words = moved;
  };
  drop(2);
  drop(1);
  if (perWord == 2) {
    Value yes = bit(1), half = arith::ConstantOp::create(b, l_.loc, b.getI32IntegerAttr(16));
    for (int64_t i = 0; i < needed; ++i) {
      Value low = arith::ShRUIOp::create(b, l_.loc, words[i], half),
            high = arith::ShLIOp::create(b, l_.loc, words[i + 1], half);
      words[i] = l_.select(yes, arith::OrIOp::create(b, l_.loc, high, low), words[i]);
    }
  }
  words.truncate(needed);
  Value all = vector::FromElementsOp::create(b, l_.loc, VectorType::get({needed}, i32), words);
  return vector::BitCastOp::create(b, l_.loc, VectorType::get({k_.s.vector}, f_.stored(t)), all);
}

}  // namespace normc::codegen::cuda
