// Sums between the threads of a block, by shuffles and through shared memory, always
// in the same order; and the accumulators of partials.
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/Sums.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Steps after which sums of partials go to memory, so that the error of a long sum does not grow with its
/// length. More than elsewhere, because it costs an exchange between threads.
static constexpr int64_t kFlushPartialSteps = 64;

Value TeamLowering::shared(int64_t elements) {
  auto space = gpu::AddressSpaceAttr::get(l_.b.getContext(), gpu::AddressSpace::Workgroup);
  auto type = MemRefType::get({elements}, f_.statistics(), MemRefLayoutAttrInterface(), space);
  return function_.addWorkgroupAttribution(type, l_.loc);
}

void TeamLowering::barrier() {
  gpu::BarrierOp::create(l_.b, l_.loc);
  ++barriers_;
}

/// Returns the sum of `team` neighbouring lanes of a warp, with the same bits in all of them.
Value TeamLowering::sumOverLanes(Value v, int64_t team) {
  for (int32_t distance = team / 2; distance > 0; distance /= 2) {
    auto other = gpu::ShuffleOp::create(l_.b, l_.loc, v, distance, kWarp, gpu::ShuffleMode::XOR);
    v = l_.addf(v, other.getShuffleResult());
  }
  return v;
}

/// Replaces the parts of the sums of a line's runs, or of a block's rows, by the sums, in all threads of
/// their teams.
void TeamLowering::sumOverRun(MutableArrayRef<Value> sums) {
  if (clustered())
    sumOverCluster(sums);
  else if (gridded())
    sumRunOverGrid(sums);
  else
    sumOverTeam(sums, place_.team);
}

/// Replaces the parts by the sums over `team` neighbouring threads, in all of them. Every thread of the block
/// takes part.
void TeamLowering::sumOverTeam(MutableArrayRef<Value> sums, int64_t team) {
  for (Value& v : sums) v = sumOverLanes(v, std::min(team, kWarp));
  // A shuffle orders no memory accesses, and a neighbour may store where the shift estimate has read.
  if (team <= kWarp) return syncWarp(l_.b, l_.loc);
  int64_t warps = blockThreads() / kWarp, own = team / kWarp;
  Value memory = shared(warps * sums.size());
  Value warp = l_.div(thread_, l_.index(kWarp));
  l_.when(isZero(l_.rem(thread_, l_.index(kWarp))), {}, [&] {
    for (auto [i, v] : llvm::enumerate(sums))
      memref::StoreOp::create(l_.b, l_.loc, v, memory, l_.add(warp, l_.index(i * warps)));
    return Values();
  });
  barrier();
  Value first = own == warps ? l_.index(0) : l_.mul(l_.div(warp, l_.index(own)), l_.index(own));
  for (auto [i, v] : llvm::enumerate(sums)) {
    SmallVector<Value> parts;
    for (int64_t w = 0; w < own; ++w)
      parts.push_back(memref::LoadOp::create(l_.b, l_.loc, memory, l_.add(first, l_.index(i * warps + w))));
    v = l_.tree(parts);
  }
}

/// Stores a vector, [lane][thread]: neighbouring threads access neighbouring words, so there are no bank
/// conflicts.
void TeamLowering::exchangeStore(Value memory, int64_t slot, Value v) {
  for (int64_t e = 0; e < s_.vector; ++e) {
    Value scalar = s_.vector > 1 ? Value(vector::ExtractOp::create(l_.b, l_.loc, v, e)) : v;
    memref::StoreOp::create(l_.b, l_.loc, scalar, memory,
                            l_.add(thread_, l_.index((slot * s_.vector + e) * s_.threads)));
  }
}

/// Returns what the thread at this place of another unit stored.
Value TeamLowering::exchangeLoad(Value memory, int64_t slot, int64_t unit) {
  return lanesOf([&](int64_t e) -> Value {
    int64_t at = (slot * s_.vector + e) * s_.threads + unit * place_.span;
    return memref::LoadOp::create(l_.b, l_.loc, memory, l_.add(place_.spanLane, l_.index(at)));
  });
}

/// Returns the sum of what the threads at this place of their span stored, over all units of the block or
/// every `stride`-th.
Value TeamLowering::exchangeSum(Value memory, int64_t slot, int64_t stride) {
  return lanesOf([&](int64_t e) {
    SmallVector<Value> parts;
    for (int64_t u = 0; u < blockThreads() / place_.span; u += stride) {
      int64_t at = (slot * s_.vector + e) * s_.threads + u * place_.span;
      parts.push_back(memref::LoadOp::create(l_.b, l_.loc, memory, l_.add(place_.spanLane, l_.index(at))));
    }
    return l_.tree(parts);
  });
}

/// Returns the vector of an access, made lane by lane.
Value TeamLowering::lanesOf(llvm::function_ref<Value(int64_t)> lane) {
  SmallVector<Value> lanes;
  for (int64_t e = 0; e < s_.vector; ++e) lanes.push_back(lane(e));
  if (s_.vector == 1) return lanes[0];
  return vector::FromElementsOp::create(l_.b, l_.loc, cast<VectorType>(vectorType()), lanes);
}

/// Replaces the parts by the sums over all spans of the block, in all threads.
void TeamLowering::sumOverSpans(MutableArrayRef<Value> sums) {
  // Over a grid registers are scarce. There the spans of a warp are added by shuffles, which leaves fewer
  // loads.
  const int64_t units = blockThreads() / place_.span,
                together = gridded() ? std::max<int64_t>(1, kWarp / place_.span) : 1;
  for (Value& v : sums) {  // one at a time: two buffers and a barrier each
    if (together > 1) v = sumOverSpansOfWarp(v);
    if (units == together) continue;
    Value memory = exchange(flip_++ % 2);
    exchangeStore(memory, 0, v);
    barrier();
    v = exchangeSum(memory, 0, together);
  }
}

Value TeamLowering::sumOverSpansOfWarp(Value v) {
  return lanesOf([&](int64_t e) {
    Value lane = s_.vector > 1 ? Value(vector::ExtractOp::create(l_.b, l_.loc, v, e)) : v;
    for (int32_t distance = place_.span; distance < kWarp; distance *= 2) {
      auto other = gpu::ShuffleOp::create(l_.b, l_.loc, lane, distance, kWarp, gpu::ShuffleMode::XOR);
      lane = l_.addf(lane, other.getShuffleResult());
    }
    return lane;
  });
}

/// Replaces the parts by the sums over all units of the task, in all threads.
void TeamLowering::sumOverUnits(MutableArrayRef<Value> sums) {
  if (place_.units == 1 || sums.empty()) return;
  sumOverSpans(sums);
  if (gridded()) return sumOverGrid(sums);
  if (!clustered()) return barrier();
  for (auto [v, parts] : llvm::zip(sums, exchangeColumns(sums))) v = l_.tree(parts);
}

Value TeamLowering::exchange(int64_t which) {
  if (!exchange_[which]) exchange_[which] = shared(s_.vector * s_.threads);
  return exchange_[which];
}

//===-- Accumulators of partials ---------------------------------------------------===//

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
    sums_.append(tileCount(), l_.zero(vectorType()));
    sums_.append(endPositions(), l_.zero(f_.statistics()));
  }
}

/// Adds the accumulators to the task's partials, each column by one thread, and clears them.
void TeamLowering::flushPartials() {
  if (sums_.empty()) return;
  if (congruent_) return flushCongruent();
  flushShared();
  int64_t lanes = s_.vector > 1 ? s_.vector : 0;
  for (auto [p, t] : llvm::enumerate(partials_)) {
    for (int64_t k = 0; k < tileCount(); ++k) {
      Value& sum = sums_[p * tileCount() + k];
      Position position = tilePosition(k);
      Value memory, condition = position.inside;
      if (place_.units > 1) {
        memory = exchange(flip_++ % 2);
        exchangeStore(memory, 0, sum);
        barrier();
        condition = both(isZero(place_.unit), condition);
      }
      auto add = [&, t = t] {
        Value address = f_.address(t, {.feature = l_.add(runBegin_, position.offset), .chunk = f_.task()});
        Value total = memory ? exchangeSum(memory, 0) : sum;
        f_.store(t, address, l_.addf(f_.load(t, address, lanes, {}), total), {});
        return Values();
      };
      if (condition)
        l_.when(condition, {}, add);
      else
        add();
      sum = l_.zero(vectorType());
    }
  }
  if (place_.units > 1) barrier();
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
