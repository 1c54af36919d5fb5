// Congruent rows: rows of odd length for threads that sum per feature.
//
// A thread needs the same features in all of its rows, and an odd row begins where no access
// may. But every `vector`-th row has the same alignment, whatever its length. So a task takes
// rows of one alignment class: the aligned accesses of its threads hold the same features in all of them,
// and nothing is moved between registers or lanes.
//
//   row 0   |0 1 2 3|4 5 6 7|8          of nine features, in accesses of four
//   row 1     |3 4 5 6|7 8              1 2 | 3 4 5 6 | 7 8: the head has three
//   row 4   |0 1 2 3|4 5 6 7|8          is congruent to row 0
//
// The rows of `vector` neighbouring tasks, or up to twice as many, are ordered by
// class, and each task takes as many of that order as it had.
// So a task has rows of one class, or of two if numbers are odd, and
// walks them class by class. Neighbouring rows are still read at the same time.
//
// The ends of a row, less than two accesses together, are single elements, a thread
// each, with sums of their own. The class decides the features of a thread
// before its rows, so vectors of features are read once for all of them. Sums go
// to the partials through shared memory, so that neighbouring threads store neighbouring elements.
//
// x decides the class. A tensor with another alignment than x, or segments that do not
// follow each other as rows do, are accessed by elements.
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen::cuda {

//===-- Which rows ------------------------------------------------------------------===//

/// Finds the rows that are ordered by class together with this task's, and its places in that order.
void TeamLowering::beginCongruent() {
  const Value count = l_.index(s_.vector), one = l_.index(1), size = f_.chunkUnits(),
              together = l_.mul(count, size);
  Value groups = l_.div(f_.chunks(f_.phase().number()), count);
  groups = l_.select(l_.less(one, groups), groups, one);
  const Value last = l_.sub(groups, one), group = l_.min(l_.div(f_.task(), count), last);
  Classes& d = classes_;
  d.first = l_.mul(group, together);
  const Value rows = l_.sub(l_.select(l_.less(group, last), l_.add(d.first, together), f_.units()), d.first);
  d.each = l_.div(rows, count), d.more = l_.rem(rows, count);
  d.begin = l_.sub(begin_, d.first), d.end = l_.sub(end_, d.first);
}

/// Returns the number of rows in the classes before this one.
Value TeamLowering::rowsBefore(Value which) {
  return l_.add(l_.mul(which, classes_.each), l_.min(which, classes_.more));
}

Value TeamLowering::classAt(Value place) {
  Value which = l_.index(0);
  for (int64_t k = 1; k < s_.vector; ++k)
    which = l_.add(which, l_.select(l_.less(place, rowsBefore(l_.index(k))), l_.index(0), l_.index(1)));
  return which;
}

/// Returns the unit of the phase that is the n-th of the task, or of the class that is being walked.
Value TeamLowering::unitAt(Value n) {
  if (!congruent_) return n;
  const Value count = l_.index(s_.vector);
  if (firstOfClass_) return l_.add(firstOfClass_, l_.mul(n, count));
  const Value place = l_.sub(n, classes_.first), which = classAt(place);
  return l_.add(l_.add(classes_.first, which), l_.mul(l_.sub(place, rowsBefore(which)), count));
}

/// Runs `walk` for each class of rows that the task has, with its begin_, end_ and peels_; at least once.
void TeamLowering::forEachClass(SlabOp slab, llvm::function_ref<void()> walk) {
  const Value begin = begin_, end = end_, one = l_.index(1), count = l_.index(s_.vector);
  const Value from = classAt(classes_.begin), last = classAt(l_.sub(classes_.end, one));
  const Value to = l_.add(l_.select(l_.less(from, last), last, from), one);
  l_.forEach(from, to, 1, [&](Value which) {
    const Value before = rowsBefore(which), here = l_.sub(rowsBefore(l_.add(which, one)), before);
    const Value own = l_.sub(classes_.begin, before);
    const Value first = l_.select(l_.less(l_.index(0), own), own, l_.index(0));
    const Value after = l_.min(l_.sub(classes_.end, before), here);
    begin_ = l_.index(0);
    end_ = l_.select(l_.less(first, after), l_.sub(after, first), l_.index(0));
    firstOfClass_ = l_.add(l_.add(classes_.first, which), l_.mul(first, count));
    loadedVectors_.clear();
    peelClass(slab);
    walk();
    tree_.taskBarrier();  // in the next class other threads have a feature, in memory, too
  });
  begin_ = begin, end_ = end, firstOfClass_ = {};
  loadedVectors_.clear(), peels_.clear();
}

//===-- Where they begin ------------------------------------------------------------===//

static SmallVector<TensorOp> accessedIn(SlabOp slab) {
  SmallVector<TensorOp> tensors;
  auto kernel = slab->getParentOfType<KernelOp>();
  for (auto sweep : slab.getOps<SweepOp>())
    for (ArrayAttr names : {sweep.getReads(), sweep.getWrites()})
      for (auto name : names.getAsRange<FlatSymbolRefAttr>()) {
        auto t = cast<TensorOp>(SymbolTable::lookupSymbolIn(kernel, name));
        if (t.isXSized() && !llvm::is_contained(tensors, t)) tensors.push_back(t);
      }
  return tensors;
}

/// Peels the rows of a class, all in the same way.
void TeamLowering::peelClass(SlabOp slab) {
  const Value vector = l_.index(s_.vector), zero = l_.index(0);
  auto place = [&](TensorOp t) {
    return l_.rem(elementIndex(t, f_.address(t, alongRun(unitCoordinates(zero), {.offset = zero}))), vector);
  };
  TensorOp leading = *llvm::find_if(f_.kernel().getOps<TensorOp>(), [](TensorOp t) { return t.isXSized(); });
  Peel peel;
  const Value x = place(leading);
  peel.head = l_.rem(l_.sub(vector, x), vector);
  const Value rest = l_.sub(width_, peel.head);
  peel.vectors = l_.select(l_.less(zero, rest), l_.div(rest, vector), zero);
  readsCongruent_ = {};
  for (TensorOp t : accessedIn(slab)) {
    Value congruent;
    if (t != leading) congruent = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, place(t), x);
    if (!f_.kernel()
             .getSegmentsAreOne()) {  // the row after the last one of a segment is the first of the next
      Value next = f_.address(t, {.segment = l_.index(1), .row = zero, .feature = zero});
      Value behind = f_.address(t, {.segment = zero, .row = f_.rows(), .feature = zero});
      congruent = k_.both(congruent, k_.isZero(arith::AndIOp::create(l_.b, l_.loc, l_.sub(next, behind),
                                                                     l_.index(s_.vector - 1))));
    }
    if (congruent) peel.congruent[t] = congruent;
    if (t.getAccess() != package::Access::Write) readsCongruent_ = k_.both(readsCongruent_, congruent);
  }
  slackBefore_ = slackAfter_ = 0;
  peels_.assign(std::max<int64_t>(s_.rows, kHeadTogether), peel);
}

/// Does the same for rows of any class, which are accessed by elements: a thread has the features of an
/// aligned row.
void TeamLowering::peelByElements(SlabOp slab) {
  Peel peel;
  peel.head = l_.index(0);
  peel.vectors = vectorsOfRun();
  Value never = arith::ConstantOp::create(l_.b, l_.loc, l_.b.getBoolAttr(false));
  for (TensorOp t : accessedIn(slab)) peel.congruent[t] = never;
  readsCongruent_ = never;
  slackBefore_ = slackAfter_ = 0;
  peels_.assign(std::max<int64_t>(s_.rows, kHeadTogether), peel);
}

/// Returns what `read` loads of the rows of a step, values of these types: all in whole accesses, or all by
/// elements. Each of the two branches has all loads, because loads in branches of their own would wait for
/// each other.
Values TeamLowering::readRuns(ArrayRef<Type> types, llvm::function_ref<Values()> read) {
  if (!congruent_ || !readsCongruent_) return read();
  Values none;
  for (Type type : types) none.push_back(l_.zero(type));
  wholeAccesses_ = false;
  Values single = l_.when(l_.isFalse(readsCongruent_), none, read);
  wholeAccesses_ = true;
  Values all = l_.when(readsCongruent_, single, read);
  wholeAccesses_.reset();
  return all;
}

/// Lets `compute` provide these vectors at a position of the tile that is inside. Elsewhere nothing is read,
/// because a block may have fewer columns than an access.
void TeamLowering::knownInside(const Position& position, ArrayRef<TensorOp> vectors,
                               llvm::function_ref<void()> compute) {
  if (!position.inside || !congruent_) return compute();
  auto known = [&](TensorOp t) -> Value& { return loadedVectors_[{t.getOperation(), position.index}]; };
  const Value zero = l_.zero(lanesAt(position) ? k_.vectorType() : f_.statistics());
  Values values = l_.when(position.inside, Values(vectors.size(), zero), [&] {
    compute();
    Values computed;
    for (TensorOp t : vectors) computed.push_back(known(t));
    return computed;
  });
  for (auto [t, v] : llvm::zip(vectors, values)) known(t) = v;
}

//===-- Where sums go ---------------------------------------------------------------===//

/// Does what flushPartials does. The elements of neighbouring threads are `vector` apart, so sums are
/// transposed in shared memory, and neighbouring threads add neighbouring features. Padded columns avoid bank
/// conflicts.
void TeamLowering::flushCongruent() {
  const int64_t threads = k_.threads(), pitch = threads + transposePitch(s_.vector);
  auto element = [&](Value v, int64_t e) -> Value {
    return isa<VectorType>(v.getType()) ? Value(vector::ExtractOp::create(l_.b, l_.loc, v, e)) : v;
  };
  const int64_t buffers = transposeBuffers(s_);
  auto memoryOf = [&] {
    if (buffers == 1) k_.barrier();  // the old values have been read
    return tree_.nextBuffer(s_.vector * pitch, buffers);
  };
  auto total = [&](Value memory, Value at) {
    SmallVector<Value> parts;
    for (int64_t u = 0; u < place_.units; ++u)
      parts.push_back(memref::LoadOp::create(l_.b, l_.loc, memory, l_.add(at, l_.index(u * place_.span))));
    return l_.tree(parts);
  };
  auto addTo = [&](TensorOp t, Value offset, Value sum) {
    Value address = f_.address(t, {.feature = l_.add(runBegin_, offset), .chunk = f_.task()});
    f_.store(t, address, l_.addf(f_.load(t, address, 0, {}), sum), {});
  };
  const int64_t positions = k_.tileCount() + endPositions(), ends = endPositions();
  const Value head = peels_[0].head, vectors = peels_[0].vectors;
  const Value firstLane = l_.sub(place_.lane, place_.spanLane);  // of this block
  for (auto [p, t] : llvm::enumerate(partials_))
    for (int64_t k = 0; k < k_.tileCount(); ++k) {
      Value memory = memoryOf();
      for (int64_t e = 0; e < s_.vector; ++e)
        memref::StoreOp::create(l_.b, l_.loc, element(sums_[p * positions + k], e), memory,
                                l_.add(k_.thread, l_.index(e * pitch)));
      k_.barrier();
      const int64_t window = place_.span * s_.vector;
      for (int64_t from = 0; from < window; from += threads) {
        Value w = l_.add(k_.thread, l_.index(from));
        Value lane = l_.div(w, l_.index(s_.vector)), e = l_.rem(w, l_.index(s_.vector));
        Value access = l_.add(l_.add(firstLane, lane), l_.index(k * place_.team));
        Value inside = l_.less(access, vectors);
        if (from + threads > window) inside = k_.both(inside, l_.less(w, l_.index(window)));
        k_.storeWhere(inside, [&, t = t] {
          Value offset = l_.add(l_.add(head, l_.mul(access, l_.index(s_.vector))), e);
          addTo(t, offset, total(memory, l_.add(l_.mul(e, l_.index(pitch)), lane)));
        });
      }
    }
  // The ends of all partials, as many at once as the memory has columns.
  SmallVector<std::pair<size_t, int64_t>> all;
  for (size_t p = 0; p < partials_.size(); ++p)
    for (int64_t i = 0; i < ends; ++i) all.emplace_back(p, i);
  for (size_t first = 0; first < all.size(); first += s_.vector) {
    auto some = ArrayRef(all).slice(first, std::min<size_t>(s_.vector, all.size() - first));
    Value memory = place_.units > 1 ? memoryOf() : Value();
    auto sumOf = [&](auto end) { return sums_[end.first * positions + k_.tileCount() + end.second]; };
    if (memory) {
      for (auto [column, end] : llvm::enumerate(some))
        memref::StoreOp::create(l_.b, l_.loc, sumOf(end), memory,
                                l_.add(k_.thread, l_.index(int64_t(column) * pitch)));
      k_.barrier();
    }
    for (auto [column, end] : llvm::enumerate(some)) {
      Position position = endPosition(end.second, 0);
      k_.storeWhere(k_.both(memory ? k_.isZero(place_.unit) : Value(), position.inside),
                    [&, end = end, column = column] {
                      addTo(partials_[end.first], position.offset,
                            memory ? total(memory, l_.add(place_.spanLane, l_.index(int64_t(column) * pitch)))
                                   : sumOf(end));
                    });
    }
  }
  k_.barrier();
  for (Value& sum : sums_) sum = l_.zero(sum.getType());
}

}  // namespace normc::codegen::cuda
