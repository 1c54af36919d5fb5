// Sums of columns and of lines that blocks of the grid share.
//
// Each block writes its part of a sum to workspace, and after a grid barrier (GridBarrier.h)
// each adds all parts: span u those of blocks u, u + units, ..., then the spans in
// the block. The order is the schedule's, and all blocks have the same bits.
#include "codegen/targets/cuda/Arch.h"
#include "codegen/targets/cuda/SumTree.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Parts whose loads are in flight together.
static constexpr int64_t kPartsTogether = 8;

void SumTree::arriveAtGrid() {
  k_.barrier();
  gridBarrier_->arrive();
}

void SumTree::waitForGrid() {
  gridBarrier_->wait();
  k_.barrier();
}

/// Replaces the parts of each block by the sums over all blocks. All threads of a block pass the same values
/// for the same column, and get the same.
void SumTree::unitsOverGrid(MutableArrayRef<Value> sums, Place& place, Value feature, Value inside,
                            Combiners combiners) {
  TensorOp parts = f_.tensor(partsName(f_.phase()));
  const int64_t grid = k_.launch.grid, units = k_.threads() / place.span, lanes = k_.lanes();
  Value unit = unitInBlock(place);
  auto at = [&](size_t sum, Value block) {
    return f_.address(
        parts, {.feature = feature, .window = l_.add(block, l_.index((exchanged_ + int64_t(sum)) * grid))});
  };
  k_.storeWhere(l_.both(units > 1 ? k_.isZero(unit) : Value(), inside), [&] {
    for (auto [i, v] : llvm::enumerate(sums)) f_.store(parts, at(i, k_.rank), v, {});
  });
  arriveAtGrid();
  waitForGrid();
  const int64_t steps = llvm::divideCeil(grid, units);
  Values none;
  for (size_t i = 0; i < sums.size(); ++i) none.push_back(l_.identity(of(combiners, i), k_.vectorType()));
  Values total = none;
  total =
      l_.forEach(l_.index(0), l_.index(steps), kPartsTogether, total, [&](Value first, ValueRange running) {
        SmallVector<SmallVector<Value>> terms(sums.size());
        for (int64_t k = 0; k < std::min(kPartsTogether, steps); ++k) {
          Value block = l_.add(unit, l_.mul(l_.add(first, l_.index(k)), l_.index(units)));
          const bool always = steps <= kPartsTogether && (k + 1) * units <= grid;
          Value there = l_.both(l_.less(always ? l_.index(0) : block, l_.index(grid)), inside);
          Values loaded = l_.when(there, none, [&] {
            Values own;
            for (size_t i = 0; i < sums.size(); ++i) own.push_back(f_.load(parts, at(i, block), lanes, {}));
            return own;
          });
          for (auto [list, v] : llvm::zip(terms, loaded)) list.push_back(v);
        }
        Values next(running);
        for (auto [i, v] : llvm::enumerate(next))
          v = l_.combine(of(combiners, i), v, l_.tree(terms[i], of(combiners, i)));
        return next;
      });
  exchanged_ += int64_t(sums.size());
  // The rows of the next sweep get addresses of their own: those of this one would occupy registers during
  // the barrier.
  Value again = k_.toI32(unit);
  again = gpu::ShuffleOp::create(l_.b, l_.loc, again, 0, kWarp, gpu::ShuffleMode::XOR).getShuffleResult();
  again = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(), again);
  place.unit = l_.add(l_.mul(k_.rank, l_.index(units)), again);
  overSpans(total, place, combiners);
  llvm::copy(total, sums.begin());
}

/// Replaces the parts by the sums of runs, in all threads of their teams in all blocks: over the team in each
/// block, then over the blocks in their order. Steps alternate between two places for parts: a block that
/// writes in step i + 2 has passed the barrier of step i + 1, before which all blocks had read the parts of
/// step i.
void SumTree::runOverGrid(MutableArrayRef<Value> sums, Combiners combiners) {
  overTeam(sums, k_.s.team, combiners);
  TensorOp parts = f_.tensor(partsName(f_.phase()));
  const int64_t grid = k_.launch.grid, teams = k_.threads() / k_.s.team;
  Value team = teams == 1 ? l_.index(0) : l_.div(k_.thread, l_.index(k_.s.team));
  Value step = l_.mul(turn_, l_.index(parts.getWindow() / 2));
  auto at = [&](size_t sum, Value block) {
    Value told = l_.add(step, l_.index((exchanged_ + int64_t(sum)) * teams * grid));
    Value place = l_.add(told, l_.add(l_.mul(team, l_.index(grid)), block));
    return f_.address(parts, {.window = place, .chunk = f_.task()});
  };
  k_.storeWhere(k_.isZero(teams == 1 ? k_.thread : l_.rem(k_.thread, l_.index(k_.s.team))), [&] {
    for (auto [i, v] : llvm::enumerate(sums)) f_.store(parts, at(i, k_.rank), v, {});
  });
  arriveAtGrid();
  waitForGrid();
  Value lane = l_.rem(k_.thread, l_.index(kWarp));
  for (auto [i, v] : llvm::enumerate(sums)) {
    const Combiner combiner = of(combiners, i);
    SmallVector<Value> terms;
    for (int64_t first = 0; first < grid; first += kWarp) {
      Value block = l_.add(lane, l_.index(first)), there = l_.less(block, l_.index(grid));
      terms.push_back(l_.when(there, l_.identity(combiner, v.getType()),
                              [&, i = i] { return Values{f_.load(parts, at(i, block), 0, {})}; })[0]);
    }
    v = overLanes(l_.tree(terms, combiner), kWarp, combiner);
  }
  exchanged_ += int64_t(sums.size());
}

}  // namespace normc::codegen::cuda
