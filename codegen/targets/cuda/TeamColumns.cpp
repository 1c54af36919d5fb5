// Columns: a lane has the statistics of its vector of features, teams take rows.
//
// The first `hold` steps of rows stay in registers, in the data type, for all
// sweeps of the slab; later rows are read again. So one kernel
// serves any number of rows, and few rows are read once. In a cluster, or over a grid,
// each block has teams on the same columns, and all teams together take
// the rows.
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen::cuda {

void TeamLowering::columns(SlabOp s) {
  run_.place = k_.placeOf(s_.team);
  if (k_.taskBlocks() > 1) {  // blocks share the columns and divide the rows
    run_.place.team = s_.team;
    run_.place.lane = run_.place.spanLane;
    run_.place.unit = l_.add(l_.mul(k_.rank, l_.index(run_.place.units)), run_.place.unit);
    run_.place.units *= k_.taskBlocks();
  }
  const Value unit = run_.place.unit;
  auto tile = [&](Value begin, Value end, Coordinates at) {
    beginRun(begin);
    run_.width = columnCount(begin, end);
    lanes_ = k_.lanes();
    for (int64_t k = 0; k < k_.tileCount(); ++k) {  // more than one if accesses are single elements
      tree_.beginStep({});
      Position position = access_->ofTile(k);
      inside_ = position.inside;
      run_.place.unit = unit;
      Replicas replicas(1);
      replicas[0].at = at;
      replicas[0].at.feature = l_.add(begin, position.offset);
      replicas[0].values = shared_;
      holdRows(replicas[0]);
      body(s, replicas);
      k_.barrier();
    }
    columnRows_.tensors.clear();
    columnRows_.rows.clear();
  };
  if (f_.phase().isOverFeatures())
    return l_.forEach(begin_, end_, columnsOf(s_),
                      [&](Value begin) { tile(begin, end_, {.chunk = f_.task()}); });
  auto [begin, end] = columnRange();
  if (!s.isPer(Axis::Segment)) return tile(begin, end, {.chunk = f_.task()});
  l_.forEach(begin_, end_, 1, [&, begin = begin, end = end](Value segment) {
    tile(begin, end, {.segment = segment, .chunk = f_.task()});
  });
}

/// Returns the rows of the slab, of all segments if it spans them.
Value TeamLowering::rowCount() {
  bool overSegments = !slab_.isPer(Axis::Segment) && !f_.kernel().getSegmentsAreOne();
  return overSegments ? l_.mul(f_.segments(), f_.rows()) : f_.rows();
}

/// Returns the rows of this team in the step that begins at `first`. Rows of a kept step that are behind the
/// end of the slab are not moved to its last row: they are not read, and their addresses stay simple sums.
TeamLowering::Replicas TeamLowering::rowsFrom(const Replica& column, Value first, Value end, bool kept) {
  bool overSegments = !slab_.isPer(Axis::Segment) && !f_.kernel().getSegmentsAreOne();
  // Never divides by zero, also without rows.
  Value length =
      overSegments ? l_.select(l_.less(l_.index(0), f_.rows()), f_.rows(), l_.index(1)) : f_.rows();
  Replicas rows(s_.rows, column);
  for (int64_t r = 0; r < s_.rows; ++r) {
    auto set = [&](Value at) {
      rows[r].at.row = overSegments ? l_.rem(at, length) : at;
      if (overSegments)
        rows[r].at.segment = l_.div(at, length);
      else if (!rows[r].at.segment)
        rows[r].at.segment = l_.index(0);
    };
    if (!kept) {
      placeUnit(rows[r], first, r, end, set);
      continue;
    }
    Value row = l_.add(l_.add(first, l_.index(r * run_.place.units)), run_.place.unit);
    rows[r].index = r;
    rows[r].active = l_.less(row, end);
    set(row);
  }
  return rows;
}

/// Reads the first rows of every tensor with rows. All loads are in flight before the first is used.
void TeamLowering::holdRows(const Replica& column) {
  columnRows_.tensors.clear();
  columnRows_.rows.clear();
  if (!s_.hold || !slab_.getResident()) return;
  for (auto sweep : slab_.getOps<SweepOp>()) {
    for (TensorOp t : f_.tensors(sweep.getReads())) {
      if (sweep.getCondition() && t.isXSized()) continue;  // the condition may not hold
      if (t.hasAxis(Axis::Row) && !llvm::is_contained(columnRows_.tensors, t))
        columnRows_.tensors.push_back(t);
    }
  }
  auto typeOf = [&](TensorOp t) -> Type {
    bool wide = s_.vector > 1 && t.hasAxis(Axis::Feature);
    return wide ? Type(VectorType::get({s_.vector}, f_.stored(t))) : f_.stored(t);
  };
  const Value end = rowCount();
  for (int64_t h = 0; h < s_.hold; ++h)
    for (const Replica& row :
         rowsFrom(column, l_.index(h * run_.place.units * s_.rows), end, /*kept=*/true)) {
      Values zeros;
      for (TensorOp t : columnRows_.tensors)
        zeros.push_back(arith::ConstantOp::create(l_.b, l_.loc, l_.b.getZeroAttr(typeOf(t))));
      columnRows_.rows.push_back(l_.when(l_.both(row.active, inside_), zeros, [&] {
        Values loaded;
        for (TensorOp t : columnRows_.tensors) {
          int64_t lanes = isa<VectorType>(typeOf(t)) ? s_.vector : 0;
          loaded.push_back(f_.loadStored(t, f_.address(t, row.at), lanes));
        }
        return loaded;
      }));
    }
}

void TeamLowering::columnSweep(SweepOp op, Replicas& replicas) {
  Sweep s = prepare(op);
  Replica& column = replicas[0];
  hoist(s, column);
  Value count = rowCount();
  if (op.getCondition()) count = l_.select(mapped(op.getCondition(), column.values), count, l_.index(0));
  const Values none = k_.identities(s.combiners, k_.vectorType());
  auto step = [&](Value first, Position position, Values& running) {
    Replicas rows = rowsFrom(column, first, count, position.index >= 0);
    Values own = k_.identities(s.combinersOf(rows.size(), 1), k_.vectorType());
    element(s, rows, [&](int64_t) { return position; }, own);
    storePending(s);
    for (size_t k = 0; k < s.slots; ++k) {
      SmallVector<Value> terms;
      for (size_t r = 0; r < rows.size(); ++r) terms.push_back(own[r * s.slots + k]);
      running[k] = l_.combine(s.combiners[k], running[k], l_.tree(terms, s.combiners[k]));
    }
  };
  const int64_t stride = run_.place.units * s_.rows, held = columnRows_.rows.size() / s_.rows;
  Values kept = none;
  for (int64_t h = 0; h < held; ++h) {
    for (int64_t r = 0; r < s_.rows; ++r)
      for (auto [t, v] : llvm::zip(columnRows_.tensors, columnRows_.rows[h * s_.rows + r]))
        held_.hold(t, r, h, v);
    step(l_.index(h * stride), {.offset = l_.index(0), .index = h}, kept);
  }
  Values sums = partials_.forEachStep(
      {l_.index(held * stride), count}, stride, none,
      [&](Value first, Values& running) { step(first, {.offset = l_.index(0)}, running); }, s.combiners);
  if (held) sums = l_.combineEach(kept, sums, s.combiners);
  tree_.overUnits(sums, run_.place, column.at.feature, inside_, s.combiners);
  for (auto [result, v] : llvm::zip(op.getSums(), sums)) column.values.map(result, v);
}

}  // namespace normc::codegen::cuda
