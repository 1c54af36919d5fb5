// The accumulators of partials: what a task sums per feature, in registers, and how it reaches memory.
#include "codegen/targets/cuda/TeamLowering.h"
#include "runtime/abi/Sums.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Steps after which sums of partials go to memory, so that the error of a long sum does not grow with its
/// length. More than elsewhere, because it costs an exchange between threads.
static constexpr int64_t kFlushPartialSteps = 64;

/// Makes accumulators for the partials that the slab's sweeps sum per feature, if it keeps them in registers:
/// for a partial those of its accesses, then those of its ends.
void TeamLowering::beginPartials(SlabOp slab) {
  partials_.clear();
  partialsOf_.clear();
  for (auto sweep : slab.getOps<SweepOp>()) {
    partialsOf_[sweep] = partials_.size();
    for (auto name : sweep.getPartials().getAsRange<FlatSymbolRefAttr>()) {
      TensorOp t = f_.tensor(name.getValue());
      if (t.hasAxis(f_.featuresLast() ? Axis::Feature : Axis::Row)) partials_.push_back(t);
    }
  }
  sums_.clear();
  if (s_.tile == 0) return;
  for (size_t p = 0; p < partials_.size(); ++p) {
    sums_.append(k_.tileCount(), l_.zero(k_.vectorType()));
    sums_.append(endPositions(), l_.zero(f_.statistics()));
  }
}

/// Adds the accumulators to the task's partials, each column by one thread, and clears them.
void TeamLowering::flushPartials() {
  if (sums_.empty()) return;
  if (congruent_) return flushCongruent();
  flushShared();
  int64_t lanes = k_.lanes();
  for (auto [p, t] : llvm::enumerate(partials_)) {
    for (int64_t k = 0; k < k_.tileCount(); ++k) {
      Value& sum = sums_[p * k_.tileCount() + k];
      Position position = tilePosition(k);
      Value memory, condition = position.inside;
      if (place_.units > 1) {
        memory = tree_.nextBuffer();
        tree_.store(memory, sum);
        k_.barrier();
        condition = k_.both(k_.isZero(place_.unit), condition);
      }
      auto add = [&, t = t] {
        Value address = f_.address(t, {.feature = l_.add(runBegin_, position.offset), .chunk = f_.task()});
        Value total = memory ? tree_.total(memory, place_) : sum;
        f_.store(t, address, l_.addf(f_.load(t, address, lanes, {}), total), {});
        return Values();
      };
      if (condition)
        l_.when(condition, {}, add);
      else
        add();
      sum = l_.zero(k_.vectorType());
    }
  }
  if (place_.units > 1) k_.barrier();
}

/// Runs `step(i, sums)` for i = begin, begin + stride, ... < end, in two levels if anything is summed. The
/// loop carries the other values from step to step, too.
Values TeamLowering::steps(Value begin, Value end, int64_t stride, Values zeros,
                           llvm::function_ref<void(Value, Values&)> step, Values* carriedToo) {
  size_t count = zeros.size(), sums = sums_.size();
  Values none, &ahead = carriedToo ? *carriedToo : none;
  auto inner = [&](Value from, Value to) {
    Values carried(zeros);
    carried.append(sums_);
    carried.append(ahead);
    Values out = l_.forEach(from, to, stride, carried, [&](Value i, ValueRange running) {
      Values next(running.take_front(count));
      sums_.assign(running.begin() + count, running.begin() + count + sums);
      ahead.assign(running.begin() + count + sums, running.end());
      step(i, next);
      next.append(sums_);
      next.append(ahead);
      return next;
    });
    sums_.assign(out.begin() + count, out.begin() + count + sums);
    ahead.assign(out.begin() + count + sums, out.end());
    out.truncate(count);
    return out;
  };
  if (zeros.empty() && sums_.empty()) return inner(begin, end);
  int64_t block = (sums_.empty() ? kLongestChain : kFlushPartialSteps) * stride;
  Values cleared = sums_, carried = zeros;
  carried.append(ahead);
  Values total = l_.forEach(
      begin, end, block, carried,
      [&](Value first, ValueRange running) {
        sums_ = cleared;
        ahead.assign(running.begin() + count, running.end());
        Values own = inner(first, l_.min(l_.add(first, l_.index(block)), end));
        flushPartials();
        for (auto [i, v] : llvm::enumerate(own)) v = l_.addf(running[i], v);
        own.append(ahead);
        return own;
      },
      congruent_ ? Loops::Invariants::Inside : Loops::Invariants::Before);
  sums_ = cleared;
  total.truncate(count);
  return total;
}

}  // namespace normc::codegen::cuda
