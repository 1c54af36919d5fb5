// Sweeps with layout channels_first, where the rows of a feature are contiguous in each segment. A task has
// whole channels and goes from run to run, or it has a piece of the batch in the order of memory.
#include "codegen/targets/cpu/lower/Sweep.h"
#include "llvm/Support/SaveAndRestore.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace normc::codegen {

/// Stores one channel after the other: all runs of one, then those of the next (see writeInTurn). Large calls
/// do not, because memory serves several channels side by side as well.
void PhaseLowering::writeChannelsInTurn(SweepOp op, Replicas& replicas) {
  llvm::SaveAndRestore longer(steps_.unroll, unrollInTurn(replicas.size()));
  for (Replica& r : replicas) {
    Replicas one{r};
    channelSweep(op, one);
  }
}

/// Works on several channels of a whole batch together: all of them go through a segment before the next one,
/// and each has its own sums. Sums of short runs are kept over several segments, as many as make one long
/// run; a long run is summed in levels.
void PhaseLowering::channelSweep(SweepOp op, Replicas& replicas, Replica* all) {
  Sweep s(partsOf(op));
  if (schedule_.getInTurn() && !steps_.large && replicas.size() > 1 && !s.writes.empty() && s.slots == 0)
    return writeChannelsInTurn(op, replicas);
  const int64_t step = schedule_.getVector() * steps_.unroll;
  const Value width = runWidth(), none = l_.index(0);
  Value segments = f_.segments();
  if (op.getCondition()) segments = l_.select(mapped(op.getCondition(), replicas[0].values), segments, none);
  auto run = [&](Value segment, Values sums, bool flushes) {
    Replicas rows = replicas;
    for (Replica& r : rows) r.at.segment = segment, hoist(s, r);
    return along(s, rows, width, sums, flushes);
  };
  if (!s.slots) return l_.forEach(none, segments, 1, [&](Value segment) { run(segment, {}, false); });

  assert(s.partials.empty() && "a task has all rows of its channels");
  const SmallVector<Combiner> combiners = s.combinersOf(replicas.size(), steps_.unroll);
  const Values identity = identities(combiners, schedule_.getVector());
  auto shortRuns = [&] {
    // Three levels: sums over `some` segments, over blocks of them, and over all blocks.
    const int64_t lanes = schedule_.getVector();
    Value rest = l_.div(l_.rem(width, l_.index(step)), l_.index(lanes)),
          tail = schedule_.getScalarTail() ? l_.rem(width, l_.index(lanes)) : l_.index(1);
    Value additions = l_.add(l_.add(l_.div(width, l_.index(step)), rest), tail);
    additions = l_.max(additions, l_.index(1));  // without rows there is none
    Value some = l_.div(l_.index(kLongestChain), l_.min(additions, l_.index(kLongestChain)));
    Value block = l_.mul(some, l_.index(kLongestChain));
    return l_.forEach(none, segments, block, identity, [&](Value first, ValueRange running) {
      Value last = l_.min(l_.add(first, block), segments);
      Values ofBlock = l_.forEach(first, last, some, identity, [&](Value from, ValueRange before) {
        Value to = l_.min(l_.add(from, some), last);
        Values ofSome = l_.forEach(from, to, 1, identity, [&](Value segment, ValueRange sums) {
          return run(segment, Values(sums), false);
        });
        return l_.combineEach(before, ofSome, combiners);
      });
      return l_.combineEach(running, ofBlock, combiners);
    });
  };
  auto longRuns = [&] {
    auto some = [&](Value first, Value last, ValueRange running) {
      return l_.forEach(first, last, 1, running, [&](Value segment, ValueRange before) {
        return l_.combineEach(before, run(segment, identity, true), combiners);
      });
    };
    return l_.inLevels(none, segments, 1, identity, some, {}, combiners);
  };
  Value isShort = l_.less(width, l_.index(kLongestChain * step));
  Values sums = l_.when(isShort, identity, shortRuns);
  sums = l_.when(l_.isFalse(isShort), sums, longRuns);
  acrossLanes(s, replicas, sums, all);
}

void PhaseLowering::channelStreamSweep(SweepOp op, Value begin, Value end) {
  Sweep s(partsOf(op));
  if (op.getCondition()) end = l_.select(mapped(op.getCondition(), shared_), end, begin);
  int64_t together = steps_.rows;
  const int64_t lanes = schedule_.getVector();
  const unsigned unroll = steps_.unroll;
  Value rows = f_.rows(), zero = l_.index(0), tile = zero;
  // Each run is summed first. The sums of several features are then one vector.
  auto runs = [&](Value segment, Value feature, int64_t n, Value width) {
    Replicas replicas(n);
    for (auto [i, r] : llvm::enumerate(replicas)) {
      r.at = {.segment = segment, .feature = l_.add(feature, l_.index(i)), .chunk = f_.task()};
      r.values = shared_;
      hoist(s, r);
    }
    // A sum may not depend on where a run begins, so it has no lead. Outputs with leads follow in a second
    // pass.
    const bool twice = runsHaveLeads_ && s.slots;
    llvm::SaveAndRestore later(s.stores, !twice);
    Values sums = along(s, replicas, width, identities(s.combinersOf(n, unroll), lanes));
    for (size_t k = 0; k < s.slots; ++k) {
      Values each;
      for (int64_t r = 0; r < n; ++r)
        each.push_back(l_.tree(ArrayRef<Value>(sums).slice((r * s.slots + k) * unroll, unroll)));
      const bool pack = n > 1 && lanes > 1;
      for (int64_t r = 0; r < (pack ? 1 : n); ++r) {
        Value at = l_.add(l_.sub(feature, tile), l_.index(r));
        buffer_->add(k, at, pack ? horizontals(each) : horizontal(each[r]));
      }
    }
    if (!twice) return;
    s.stores = true;
    llvm::SaveAndRestore summed(s.collects, false);
    llvm::SaveAndRestore longer(steps_.unroll, largeUnroll(1));
    l_.forEach(zero, l_.index(n), 1, [&](Value i) {
      Replica one;
      one.at = {.segment = segment, .feature = l_.add(feature, i), .chunk = f_.task()};
      one.values = shared_;
      hoist(s, one);
      along(s, one, width, {});
    });
  };
  // Rows from `first` to `last` of the batch, segment after segment; in each the features from `tile` on.
  auto segmentsBetween = [&](Value first, Value last, Value features) {
    auto [from, row] = segmentAndRow(first);
    Value to = segmentAndRow(l_.add(last, l_.sub(rows, l_.index(1)))).first;
    l_.forEach(from, to, 1, [&](Value segment) {
      Value origin = l_.mul(segment, rows);
      Value begin = l_.max(l_.sub(first, origin), zero);
      Value width = l_.sub(l_.min(l_.sub(last, origin), rows), begin);
      llvm::SaveAndRestore begins(runBegin_, begin);
      Value whole = l_.add(tile, l_.roundDown(l_.sub(features, tile), together));
      l_.forEach(tile, whole, together, [&](Value f) { runs(segment, f, together, width); });
      if (together > 1) l_.forEach(whole, features, 1, [&](Value f) { runs(segment, f, 1, width); });
    });
  };
  auto sweep = [&] {
    if (!s.slots) return segmentsBetween(begin, end, f_.features());
    l_.forEach(zero, f_.features(), kStreamTile, [&](Value from) {
      tile = from;
      Value features = l_.min(l_.add(tile, l_.index(kStreamTile)), f_.features());
      // Two levels: the sums of some segments are collected in the buffer, which is then added to the
      // partials.
      Value some = l_.mul(rows, l_.index(kLongestChain));
      auto collected = scf::ForOp::create(l_.b, l_.loc, begin, end, some);
      OpBuilder::InsertionGuard guard(l_.b);
      l_.b.setInsertionPointToStart(collected.getBody());
      Value first = collected.getInductionVar();
      Value width = l_.sub(features, tile);
      buffer_->clear(s.partials.size(), width);
      segmentsBetween(first, l_.min(l_.add(first, some), end), features);
      buffer_->flush(s.partials, tile, width);
    });
    tile = zero;
  };
  auto alone = [&] {
    llvm::SaveAndRestore one(together, s.slots ? together : 1);
    llvm::SaveAndRestore longer(steps_.unroll, s.slots ? steps_.unroll : largeUnroll(1));
    sweep();
  };
  l_.when(l_.less(begin, end), {}, [&] {
    if (!s.writes.empty()) return cutRuns(sweep, alone);
    return sweep(), Values();
  });
}

}  // namespace normc::codegen
