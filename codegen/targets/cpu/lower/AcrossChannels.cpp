// Columns across channels: statistics of rows whose features do not lie together, with layout channels_first.
//
// A piece is so many rows of a segment that all their features stay in the second-level cache. Lanes are
// rows, and what the slab computes for a row is an element of memory in the first-level cache. A sweep goes
// over R features together, along the rows of the piece; their terms are added first, so a sum in memory is
// updated once for R features. The code between sweeps is a loop over the rows.
#include "codegen/targets/cpu/lower/Sweep.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/SaveAndRestore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen {

/// The bytes of a piece in the tensors that its sweeps read, and if they are several. The next piece is
/// prefetched beside it.
static constexpr int64_t kPieceBytes = 512 << 10, kPieceBytesOfSeveral = 256 << 10;
/// The same where it has whole runs: short pieces of runs that begin inside cache lines cost more than cache.
static constexpr int64_t kWholeBytes = 4 << 20;
/// The fewest rows of a piece that is not a whole run, whatever the features.
static constexpr int64_t kLeastRows = 64;

/// Returns the additions to the lowest level of a sum over features: fewer where the terms of a step are not
/// added to each other first.
static int64_t firstChain(int64_t together) { return together == 1 ? kLongestChain / 2 : kLongestChain; }

/// Returns the levels below the last one of a sum over features, so many at a time. Of an unknown number of
/// features the last level is as long as it has to be.
static size_t levelsBelow(std::optional<int64_t> features, int64_t together) {
  if (!features) return 2;
  const int64_t steps = *features / together, rest = *features % together;
  int64_t block = firstChain(together);
  if (steps + rest <= block) return 0;
  size_t levels = 1;
  for (; llvm::divideCeil(steps, block) + (rest != 0) > kLongestChain; block *= kLongestChain) ++levels;
  return levels;
}

/// Allocates memory for the values that are used in another loop than they are computed in, and for the lower
/// levels of sums.
void PhaseLowering::allocatePiece(SlabOp s) {
  pieces_.emplace(l_, f_, schedule_.getVector());
  Block& body = s.getBody().front();
  size_t sums = 0;
  auto loopOf = [&](Operation& op) -> Operation* {  // the sweep, or the one before the scalar code
    Operation* at = &op;
    while (at && !isa<SweepOp>(at)) at = at->getPrevNode();
    return at;
  };
  for (Operation& op : body) {
    if (isa<SweepOp>(op)) sums = std::max<size_t>(sums, op.getNumResults());
    for (Value v : op.getResults()) {
      const bool leaves = isa<SweepOp>(op) || llvm::any_of(v.getUsers(), [&](Operation* user) {
                            return loopOf(*body.findAncestorOpInBlock(*user)) != loopOf(op);
                          });
      if (leaves && !shared_.contains(v)) pieces_->allocate(v);
    }
  }
  for (auto sweep : s.getOps<SweepOp>())
    if (large_.pastCaches && !stage_ && sweep.getWrites().size() == 1)
      stage_.emplace(l_, f_, f_.stored(f_.tensor(cast<FlatSymbolRefAttr>(sweep.getWrites()[0]).getValue())));
  pieces_->allocateLevels(levelsBelow(Loops::constant(f_.groupWidth(Axis::Group)), 1), sums);
}

/// Returns the rows of a piece if a task has so many of a segment. Pieces begin at whole cache lines of a run
/// that does, in each tensor, and are equally long.
Value PhaseLowering::rowsOfPiece(Value rows) {
  int64_t inputBytes = 0, narrowest = sizeof(double);
  llvm::DenseSet<Operation*> inputs;
  for (auto sweep : slab_.sweeps())
    for (ArrayAttr names : {sweep.getReads(), sweep.getWrites()})
      for (auto name : names.getAsRange<FlatSymbolRefAttr>()) {
        TensorOp t = f_.tensor(name.getValue());
        if (!t.isXSized()) continue;
        const int64_t bytes = elementBytes(t.getType());
        narrowest = std::min(narrowest, bytes);
        if (names == sweep.getReads() && inputs.insert(t).second) inputBytes += bytes;
      }
  const int64_t line = kCacheLine / narrowest, most = PieceMemory::mostRows(f_.statistics());
  auto atLeast = [&](Value v, int64_t n) -> Value { return l_.max(v, l_.index(n)); };
  auto ceilDiv = [&](Value v, Value by) { return l_.div(l_.add(v, l_.sub(by, l_.index(1))), by); };
  auto rowsOf = [&](int64_t bytes) {
    Value row = l_.mul(f_.groupWidth(Axis::Group), l_.index(inputBytes));
    return l_.min(l_.div(l_.index(bytes), atLeast(row, 1)), l_.index(most));
  };
  Value isWhole = l_.isFalse(l_.less(rowsOf(kWholeBytes), f_.rows()));
  Value fit = l_.select(isWhole, l_.index(most),
                        atLeast(rowsOf(inputs.size() > 1 ? kPieceBytesOfSeveral : kPieceBytes), kLeastRows));
  Value equal = ceilDiv(rows, atLeast(ceilDiv(rows, fit), 1));
  return l_.mul(ceilDiv(atLeast(equal, 1), l_.index(line)), l_.index(line));
}

void PhaseLowering::acrossChannels(SlabOp s, Value begin, Value end) {
  const Value rows = f_.rows(), zero = l_.index(0), width = f_.groupWidth(Axis::Group);
  Value first = segmentAndRow(begin).first,
        last = segmentAndRow(l_.add(end, l_.sub(rows, l_.index(1)))).first;
  l_.forEach(first, l_.select(l_.less(begin, end), last, first), 1, [&](Value segment) {
    Value origin = l_.mul(segment, rows);
    Value from = l_.max(l_.sub(begin, origin), zero);
    Value to = l_.min(l_.sub(end, origin), rows), step = rowsOfPiece(l_.sub(to, from));
    l_.forEach(zero, l_.index(f_.groups(Axis::Group)), 1, [&](Value group) {
      l_.forEach(from, to, step, {}, [&](Value row, ValueRange) {
        Piece p{.at = {.segment = segment, .row = row, .feature = l_.mul(group, width), .group = group}};
        p.at.chunk = f_.task();
        p.rows = l_.min(step, l_.sub(to, row));
        // Behind the last piece of a segment, be it another task's, come the next features in memory.
        Value behind = l_.add(row, step), more = l_.less(behind, rows);
        p.nextRow = l_.select(more, behind, zero);
        p.nextFeature = l_.select(more, zero, width);
        llvm::SaveAndRestore current(piece_, &p);
        llvm::SaveAndRestore begins(runBegin_, row);
        llvm::SaveAndRestore next(next_, steps_.large && schedule_.getFetch() ? p.nextRow : Value());
        piece(s);
        return Values();
      });
    });
  });
}

void PhaseLowering::piece(SlabOp s) {
  SmallVector<Operation*> scalars;
  for (Operation& op : s.getBody().front()) {
    if (op.getNumResults() && shared_.contains(op.getResult(0))) continue;
    auto sweep = dyn_cast<SweepOp>(op);
    if (!sweep) {
      scalars.push_back(&op);
      continue;
    }
    scalarsOfPiece(scalars);
    scalars.clear();
    sweepPiece(sweep);
  }
  scalarsOfPiece(scalars);
}

void PhaseLowering::scalarsOfPiece(ArrayRef<Operation*> ops) {
  if (ops.empty()) return;
  const int64_t lanes = schedule_.getVector();
  auto at = [&](Value offset, int64_t width, Value mask) {
    llvm::SaveAndRestore of(lanes_, width);
    llvm::SaveAndRestore masked(laneMask_, mask);
    Replica r;
    r.at = piece_->at;
    r.values = shared_;
    r.at.row = l_.add(r.at.row, offset);
    for (Operation* op : ops) {
      op->walk([&](Operation* inner) {
        for (Value v : inner->getOperands())
          if (StackMemory place = pieces_->of(v); place && !r.values.contains(v))
            r.values.map(v, place.load(l_, offset, width));
      });
      scalarOp(*op, r);
      for (Value v : op->getResults())
        if (StackMemory place = pieces_->of(v))
          place.store(l_, offset, l_.broadcast(mapped(v, r.values), width));
    }
  };
  Value whole = l_.roundDown(piece_->rows, lanes);
  l_.forEach(l_.index(0), whole, lanes, [&](Value j) { at(j, lanes, {}); });
  if (schedule_.getScalarTail())
    l_.forEach(whole, piece_->rows, 1, [&](Value j) { at(j, 0, {}); });
  else
    l_.when(l_.less(whole, piece_->rows), {}, [&] {
      at(whole, lanes, f_.laneMask(l_.sub(piece_->rows, whole), lanes));
      return Values();
    });
}

void PhaseLowering::sweepPiece(SweepOp op) {
  assert(!op.getCondition() && "a statistic of a row has no state, and so no warmup");
  Sweep s(partsOf(op));
  s.keepSumsInPlaces();
  llvm::SetVector<Value> outside;
  op.getBody().walk([&](Operation* inner) {
    for (Value v : inner->getOperands())
      if (StackMemory place = pieces_->of(v); place && outside.insert(v)) s.ofRow.push_back({v, place});
  });
  if (!op.getSums().empty())
    return sumFeatures(s, llvm::map_to_vector(op.getSums(), [&](Value v) { return pieces_->of(v); }));
  auto direct = [&] { featuresBetween(s, l_.index(0), f_.groupWidth(Axis::Group), steps_.rows); };
  if (!stage_ || !steps_.large || s.writes.size() != 1) return direct();
  Value serves = stage_->serves(s.writes[0], piece_->rows);
  Value staged = l_.both(l_.both(large_.pastCaches, l_.isFalse(large_.nonTemporal)), serves);
  l_.when(staged, {}, [&] {
    llvm::SaveAndRestore stages(s.stage, &*stage_);
    stage_->write(s.writes[0], piece_->at, piece_->rows,
                  [&](Value first, int64_t count) { features(s, first, count); });
    return Values();
  });
  l_.when(l_.isFalse(staged), {}, [&] {
    direct();
    return Values();
  });
}

void PhaseLowering::features(Sweep& s, Value first, int64_t count) {
  Replicas replicas(count);
  for (auto [i, r] : llvm::enumerate(replicas)) {
    r.at = piece_->at;
    r.values = shared_;
    r.at.feature = l_.add(r.at.feature, l_.add(first, l_.index(i)));
    hoist(s, r);
  }
  Values sums = identities(s.combinersOf(replicas.size(), steps_.unroll), schedule_.getVector());
  addRowPartials(s, replicas, along(s, replicas, piece_->rows, sums));
}

void PhaseLowering::featuresBetween(Sweep& s, Value first, Value last, int64_t count) {
  Value whole = l_.add(first, l_.roundDown(l_.sub(last, first), count));
  l_.forEach(first, whole, count, [&](Value feature) { features(s, feature, count); });
  if (count > 1) l_.forEach(whole, last, 1, [&](Value feature) { features(s, feature, 1); });
}

/// Steps add to the lowest level of the sums. Where there is a rest, of single features, it is a sum of that
/// level, too.
void PhaseLowering::sumFeatures(Sweep& s, PieceMemory::Places sums) {
  // The order of a sum is the same in a large call.
  const int64_t together = s.rowsTogether(schedule_.getRows());
  const int64_t chain = firstChain(together);
  const Value none = l_.index(0), features = f_.groupWidth(Axis::Group),
              whole = l_.roundDown(features, together);
  const size_t top = levelsBelow(Loops::constant(features), together);
  auto places = [&](size_t level) {
    return level == top ? sums : pieces_->level(level).take_front(sums.size());
  };
  auto addTo = [&](size_t above, llvm::function_ref<void()> terms, size_t level) {
    pieces_->clear(places(level), s.rowCombiners, piece_->rows);
    terms();
    pieces_->combine(places(level), places(above), s.rowCombiners, piece_->rows);
  };
  auto lowest = [&](Value first, Value last) {
    s.sumsAt = places(0);
    featuresBetween(s, first, last, together);
  };
  auto sumUp = [&](auto& self, size_t level, Value first, Value last) -> void {
    if (level == 0) return lowest(first, last);
    int64_t block = together * chain;
    for (size_t below = 1; below < level; ++below) block *= kLongestChain;
    l_.forEach(first, last, block, [&](Value from) {
      addTo(
          level, [&] { self(self, level - 1, from, l_.min(l_.add(from, l_.index(block)), last)); },
          level - 1);
    });
  };
  pieces_->clear(places(top), s.rowCombiners, piece_->rows);
  if (top == 0) return lowest(none, features);
  sumUp(sumUp, top, none, whole);
  l_.when(l_.less(whole, features), {}, [&] {
    addTo(top, [&] { lowest(whole, features); }, 0);
    return Values();
  });
}

}  // namespace normc::codegen
