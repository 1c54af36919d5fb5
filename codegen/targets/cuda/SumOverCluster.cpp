// Sums of lines and of columns that the blocks of a cluster share.
//
// Each warp of a line, and each block of a column, sends its part of a sum to every block
// (ClusterMeeting.h). Each block adds all parts from its own memory, in the same order, so all blocks have
// the same bits.
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/SumTree.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Replaces the parts by the sums of runs, in all threads of their teams in all blocks. Every thread of the
/// cluster takes part.
void SumTree::runOverCluster(MutableArrayRef<Value> sums, Combiners combiners) {
  const Type type = f_.statistics();
  const int64_t blocks = k_.launch.cluster, warps = k_.threads() / kWarp, own = k_.s.team / kWarp,
                parts = blocks * own;
  const int64_t size = int64_t(sums.size()) * blocks * warps;
  Value memory = meeting_->memory(2 * size, type);
  for (auto [i, v] : llvm::enumerate(sums)) v = overLanes(v, kWarp, of(combiners, i));
  syncWarp(l_.b, l_.loc);  // what other lanes have read comes before what this one sends
  meeting_->begin(size * elementBytes(type));
  Value warp = l_.div(k_.thread, l_.index(kWarp)), lane = l_.rem(k_.thread, l_.index(kWarp));
  // [buffer of the step][sum][team][block][warp of the team]: the parts that a thread adds are contiguous.
  Value unit = l_.div(warp, l_.index(own)), member = l_.rem(warp, l_.index(own));
  auto begin = [&](size_t sum) {
    return l_.add(l_.mul(meeting_->turn(), l_.index(size)),
                  l_.add(l_.mul(unit, l_.index(parts)), l_.index(int64_t(sum) * blocks * warps)));
  };
  // Lane r writes to block r. The other lanes have a valid block, too, because LLVM may compute the address
  // before the condition.
  const ClusterMeeting::There there = meeting_->in(memory, l_.rem(lane, l_.index(blocks)));
  k_.storeWhere(l_.less(lane, l_.index(blocks)), [&] {
    Value place = l_.add(l_.mul(k_.rank, l_.index(own)), member);
    for (auto [i, v] : llvm::enumerate(sums))
      meeting_->send(v, k_.elementOf(there.memory, l_.add(begin(i), place)), there);
  });
  meeting_->end();
  auto part = [&](Value index) -> Value {
    return LLVM::LoadOp::create(l_.b, l_.loc, type, k_.elementOf(memory, index));
  };
  for (auto [i, v] : llvm::enumerate(sums)) {
    const Combiner combiner = of(combiners, i);
    SmallVector<Value> terms;
    if (parts <= kWarp) {
      for (int64_t p = 0; p < parts; ++p) terms.push_back(part(l_.add(begin(i), l_.index(p))));
      v = l_.tree(terms, combiner);
      continue;
    }
    for (int64_t p = 0; p < parts; p += kWarp) {
      Value index = l_.add(lane, l_.index(p)),
            inside = p + kWarp > parts ? l_.less(index, l_.index(parts)) : Value();
      if (inside) index = l_.min(index, l_.index(parts - 1));
      Value term = part(l_.add(begin(i), index));
      terms.push_back(inside ? l_.select(inside, term, l_.identity(combiner, type)) : term);
    }
    v = overLanes(l_.tree(terms, combiner), kWarp, combiner);
  }
}

/// Replaces each block's part of the sums of columns by the sums. All threads of a block pass the same values
/// for the same column.
void SumTree::unitsOverCluster(MutableArrayRef<Value> sums, const Place& place, Combiners combiners) {
  const int64_t vector = k_.s.vector, blocks = k_.launch.cluster, columns = place.span * vector,
                units = k_.threads() / place.span;
  const int64_t size = int64_t(sums.size()) * blocks * columns, alignment = std::min<int64_t>(16, 4 * vector);
  Value memory = meeting_->memory(2 * size, f_.statistics());
  meeting_->begin(size * elementBytes(f_.statistics()));
  // [buffer of the step][value][block][thread of the span][lane]
  Value mine = l_.add(l_.mul(meeting_->turn(), l_.index(size)), l_.mul(place.spanLane, l_.index(vector)));
  auto at = [&](Value memory, size_t value, Value part) {
    return k_.elementOf(memory, l_.add(mine, l_.add(l_.mul(part, l_.index(columns)),
                                                    l_.index(int64_t(value) * blocks * columns))));
  };
  // Span u writes to the block u ranks after this one: a valid block for every thread, also if LLVM computes
  // it early.
  Value unit = unitInBlock(place);
  for (int64_t first = 0; first < blocks; first += units) {
    Value step = l_.add(unit, l_.index(first)), block = l_.rem(l_.add(k_.rank, step), l_.index(blocks));
    const ClusterMeeting::There there = meeting_->in(memory, block);
    Value one = first + units > blocks ? l_.less(step, l_.index(blocks)) : Value();
    k_.storeWhere(one, [&] {
      for (auto [i, v] : llvm::enumerate(sums)) meeting_->send(v, at(there.memory, i, k_.rank), there);
    });
  }
  meeting_->end();
  SmallVector<Values> parts(sums.size());
  for (auto [i, list] : llvm::enumerate(parts))
    for (int64_t part = 0; part < blocks; ++part)
      list.push_back(
          LLVM::LoadOp::create(l_.b, l_.loc, k_.vectorType(), at(memory, i, l_.index(part)), alignment));
  for (auto [i, v] : llvm::enumerate(sums)) v = l_.tree(parts[i], of(combiners, i));
}

}  // namespace normc::codegen::cuda
