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
#include "codegen/targets/cuda/PeeledRuns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Rows of a task's head that are summed at once.
static constexpr int64_t kHeadTogether = 8;

//===-- Which rows ------------------------------------------------------------------===//

/// Finds the rows that are ordered by class together with this task's, and its places in that order.
void CongruentRuns::beginTask(Units task) {
  const Value count = l_.index(k_.s.vector), one = l_.index(1), size = f_.chunkUnits(),
              together = l_.mul(count, size);
  Value groups = l_.div(f_.chunks(f_.phase().number()), count);
  groups = l_.select(l_.less(one, groups), groups, one);
  const Value last = l_.sub(groups, one), group = l_.min(l_.div(f_.task(), count), last);
  first_ = l_.mul(group, together);
  const Value rows = l_.sub(l_.select(l_.less(group, last), l_.add(first_, together), f_.units()), first_);
  each_ = l_.div(rows, count);
  more_ = l_.rem(rows, count);
  begin_ = l_.sub(task.begin, first_);
  end_ = l_.sub(task.end, first_);
}

/// Returns the number of rows in the classes before this one.
Value CongruentRuns::rowsBefore(Value which) { return l_.add(l_.mul(which, each_), l_.min(which, more_)); }

Value CongruentRuns::classAt(Value place) {
  Value which = l_.index(0);
  for (int64_t k = 1; k < k_.s.vector; ++k)
    which = l_.add(which, l_.select(l_.less(place, rowsBefore(l_.index(k))), l_.index(0), l_.index(1)));
  return which;
}

Value CongruentRuns::unitAt(Value n) {
  const Value count = l_.index(k_.s.vector);
  if (firstOfClass_) return l_.add(firstOfClass_, l_.mul(n, count));
  const Value place = l_.sub(n, first_), which = classAt(place);
  return l_.add(l_.add(first_, which), l_.mul(l_.sub(place, rowsBefore(which)), count));
}

void CongruentRuns::forEachClass(llvm::function_ref<void(Units)> walk) {
  const Value none = l_.index(0), one = l_.index(1);
  const Value from = classAt(begin_), last = classAt(l_.sub(end_, one));
  const Value to = l_.add(l_.select(l_.less(from, last), last, from), one);
  l_.forEach(from, to, 1, [&](Value which) {
    const Value before = rowsBefore(which), here = l_.sub(rowsBefore(l_.add(which, one)), before);
    const Value own = l_.sub(begin_, before);
    const Value first = l_.select(l_.less(none, own), own, none);
    const Value after = l_.min(l_.sub(end_, before), here);
    const Value count = l_.select(l_.less(first, after), l_.sub(after, first), none);
    firstOfClass_ = l_.add(l_.add(first_, which), l_.mul(first, l_.index(k_.s.vector)));
    walk({none, count});
  });
  firstOfClass_ = {};
  peels_.clear();
}

//===-- Where they begin ------------------------------------------------------------===//

static SmallVector<TensorOp> accessedIn(SlabOp slab) {
  SmallVector<TensorOp> tensors;
  auto kernel = slab->getParentOfType<KernelOp>();
  for (auto sweep : slab.sweeps())
    for (ArrayAttr names : {sweep.getReads(), sweep.getWrites()})
      for (TensorOp t : kernel.tensors(names))
        if (t.isXSized() && !llvm::is_contained(tensors, t)) tensors.push_back(t);
  return tensors;
}

/// All rows of a slab have the same peel.
void CongruentRuns::peelAll(const Peel& peel) {
  slackBefore_ = slackAfter_ = 0;
  peels_.assign(std::max<int64_t>(k_.s.rows, kHeadTogether), peel);
}

void CongruentRuns::beginClass(SlabOp slab, const Coordinates& unit) {
  const Value vector = l_.index(k_.s.vector), zero = l_.index(0);
  const TensorOp first = leading();
  auto place = [&](TensorOp t) {
    return l_.rem(elementIndex(t, f_.address(t, along(unit, {.offset = zero}))), vector);
  };
  Peel peel;
  const Value x = place(first);
  peel.head = l_.rem(l_.sub(vector, x), vector);
  const Value rest = l_.sub(run_.width, peel.head);
  peel.vectors = l_.select(l_.less(zero, rest), l_.div(rest, vector), zero);
  readsCongruent_ = {};
  for (TensorOp t : accessedIn(slab)) {
    Value congruent;
    if (t != first) congruent = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, place(t), x);
    if (!f_.kernel()
             .getSegmentsAreOne()) {  // the row after the last one of a segment is the first of the next
      Value next = f_.address(t, {.segment = l_.index(1), .row = zero, .feature = zero});
      Value behind = f_.address(t, {.segment = zero, .row = f_.rows(), .feature = zero});
      congruent = l_.both(congruent, k_.isZero(arith::AndIOp::create(l_.b, l_.loc, l_.sub(next, behind),
                                                                     l_.index(k_.s.vector - 1))));
    }
    if (congruent) peel.congruent[t] = congruent;
    if (t.getAccess() != package::Access::Write) readsCongruent_ = l_.both(readsCongruent_, congruent);
  }
  peelAll(peel);
}

void CongruentRuns::beginElements(SlabOp slab) {
  Peel peel;
  peel.head = l_.index(0);
  peel.vectors = whole();
  Value never = arith::ConstantOp::create(l_.b, l_.loc, l_.b.getBoolAttr(false));
  for (TensorOp t : accessedIn(slab)) peel.congruent[t] = never;
  readsCongruent_ = never;
  peelAll(peel);
}

/// All loads are whole accesses, or all are by elements. Each of the two branches has all loads, because
/// loads in branches of their own would wait for each other.
Values CongruentRuns::readTogether(ArrayRef<Type> types, llvm::function_ref<Values(Whole)> read) {
  if (!readsCongruent_) return read({});
  Values none;
  for (Type type : types) none.push_back(l_.zero(type));
  Values single = l_.when(l_.isFalse(readsCongruent_), none, [&] { return read(false); });
  return l_.when(readsCongruent_, single, [&] { return read(true); });
}

/// Vectors of features are read once for all rows of a class, so they need no shift.
Value CongruentRuns::loadVector(TensorOp t, Value address, int64_t lanes) {
  return f_.loadStored(t, address, lanes, 0);
}

}  // namespace normc::codegen::cuda
