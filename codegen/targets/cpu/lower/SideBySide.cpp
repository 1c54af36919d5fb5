// Scalar code of several runs as vectors with one lane for each, and software pipelining of slabs.
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

/// Returns the last sweep of a slab, or the blocks that it stands in. Nothing before it depends on outputs.
static Operation& lastSweep(SlabOp s) {
  return *s.getBody().front().findAncestorOpInBlock(*s.sweeps().back());
}

/// Returns the values from before `middle` that it or the operations after it use.
static Values valuesUsedFrom(Operation& middle) {
  Values used;
  Block& block = *middle.getBlock();
  for (Operation& op : block) {
    if (&op == &middle) break;
    for (Value v : op.getResults())
      if (llvm::any_of(v.getUsers(), [&](Operation* user) {
            Operation* here = block.findAncestorOpInBlock(*user);
            return here == &middle || middle.isBeforeInBlock(here);
          }))
        used.push_back(v);
  }
  return used;
}

Values PhaseLowering::front(SlabOp s, Replicas replicas) {
  Replica all = replicas[0];
  Operation& middle = lastSweep(s);
  for (Operation& op : s.getBody().front()) {
    if (&op == &middle) break;
    sideBySide(op, all, replicas);
  }
  Values results;
  for (Value v : valuesUsedFrom(middle)) results.push_back(mapped(v, all.values));
  return results;
}

void PhaseLowering::back(SlabOp s, Replicas replicas, ValueRange values) {
  Replica all = replicas[0];
  Operation& middle = lastSweep(s);
  for (auto [v, is] : llvm::zip(valuesUsedFrom(middle), values)) all.values.map(v, is);
  for (Operation* op = &middle; op; op = op->getNextNode()) sideBySide(*op, all, replicas);
}

void PhaseLowering::runsAhead(SlabOp s, Value begin, Value end, int64_t step,
                              llvm::function_ref<Replicas(Value)> at) {
  l_.when(l_.less(begin, end), {}, [&] {
    // Before the loop come the first statistics, after it the last outputs; the loop carries statistics of
    // one step.
    Value last = l_.sub(end, l_.index(step));
    Values values = l_.forEach(begin, last, step, front(s, at(begin)), [&](Value i, ValueRange now) {
      Values next = front(s, at(l_.add(i, l_.index(step))));
      back(s, at(i), now);
      return next;
    });
    back(s, at(last), values);
    return Values();
  });
}

void PhaseLowering::sideBySide(Operation& op, Replica& all, Replicas& replicas) {
  if (auto sweep = dyn_cast<SweepOp>(op)) {
    spread(op, all, replicas);
    if (kind_ == Kind::Run)
      runSweep(sweep, replicas, &all);
    else
      channelSweep(sweep, replicas, &all);
  } else if (auto blocks = dyn_cast<BlocksOp>(op)) {
    spread(op, all, replicas);
    blocksOfRuns(blocks, all, replicas, [&](Operation& inner) { sideBySide(inner, all, replicas); });
  } else if (auto probe = dyn_cast<ProbeOp>(op)) {
    all.values.map(probe.getValue(), probeAll(probe, replicas));
  } else if (isa<LoadOp, StoreOp, AccumulateOp, FoldOp, CountOp>(op)) {
    spread(op, all, replicas);
    for (Replica& r : replicas) scalarOp(op, r);
    for (Value result : op.getResults()) {
      Values each;
      for (Replica& r : replicas) each.push_back(mapped(result, r.values));
      all.values.map(result, packed(each));
    }
  } else {
    scalarOp(op, all);
  }
}

/// Gives each replica its element of the values that the operation uses.
void PhaseLowering::spread(Operation& user, Replica& all, Replicas& replicas) {
  auto give = [&](Value v) {
    if (!all.values.contains(v) || replicas[0].values.contains(v)) return;
    Value values = mapped(v, all.values);
    bool differ = isa<VectorType>(values.getType());
    for (auto [i, r] : llvm::enumerate(replicas))
      r.values.map(v,
                   differ ? vector::ExtractOp::create(l_.b, l_.loc, values, int64_t(i)).getResult() : values);
  };
  user.walk([&](Operation* inner) { llvm::for_each(inner->getOperands(), give); });
}

/// Returns a vector of the scalars, or the scalar if all are the same.
Value PhaseLowering::packed(ArrayRef<Value> scalars) {
  if (llvm::all_equal(scalars)) return scalars[0];
  auto type = VectorType::get({int64_t(scalars.size())}, scalars[0].getType());
  return vector::FromElementsOp::create(l_.b, l_.loc, type, scalars);
}

Value PhaseLowering::probeAll(ProbeOp op, Replicas& replicas) {
  Values sums, means;
  double share = 0;
  for (Replica& r : replicas)
    if (Value sum = probedSum(op, r.at, share))
      sums.push_back(sum);
    else
      means.push_back(probe(op, r));
  return sums.empty() ? packed(means) : shareOf(horizontals(sums), share);
}

/// Appends the lanes of the two halves of every sum, in a vector that holds sums of `width` lanes side by
/// side. Adding them halves each sum.
static void halves(SmallVector<int64_t>& low, SmallVector<int64_t>& high, int64_t lanes, int64_t width) {
  for (int64_t first = 0; first < lanes; first += width)
    for (int64_t i = first; i < first + width / 2; ++i) {
      low.push_back(i);
      high.push_back(i + width / 2);
    }
}

Value PhaseLowering::horizontals(ArrayRef<Value> vectors, Combiner combiner) {
  Values left(vectors);
  int64_t lanes = schedule_.getVector();
  // Each round adds the halves of all sums. While there are several vectors, two become one of the same
  // length.
  for (int64_t width = lanes; width > 1; width /= 2) {
    bool pair = left.size() > 1;
    SmallVector<int64_t> low, high;
    halves(low, high, cast<VectorType>(left[0].getType()).getDimSize(0) * (pair ? 2 : 1), width);
    Values next;
    for (size_t i = 0; i < left.size(); i += pair ? 2 : 1) {
      auto of = [&](ArrayRef<int64_t> which) -> Value {
        return vector::ShuffleOp::create(l_.b, l_.loc, left[i], left[pair ? i + 1 : i], which);
      };
      next.push_back(l_.combine(combiner, of(low), of(high)));
    }
    left = next;
  }
  while (left.size() > 1) {  // more sums than lanes: one vector after another
    Values next;
    int64_t size = cast<VectorType>(left[0].getType()).getDimSize(0);
    for (size_t i = 0; i < left.size(); i += 2)
      next.push_back(vector::ShuffleOp::create(l_.b, l_.loc, left[i], left[i + 1],
                                               llvm::to_vector(llvm::seq<int64_t>(0, 2 * size))));
    left = next;
  }
  return left[0];
}

}  // namespace normc::codegen
