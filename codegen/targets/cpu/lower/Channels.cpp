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
    for (Replica& r : rows) {
      r.at.segment = segment;
      hoist(s, r);
    }
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

/// The loops of one stream for layout channels_first.
class PhaseLowering::ChannelStream {
 public:
  ChannelStream(PhaseLowering& phase, Sweep& sweep) : p_(phase), l_(phase.l_), s_(sweep) {}

  /// Emits the sweep over the rows from `begin` to `end` of the batch. Together with sums, a tile of features
  /// goes through all rows before the next.
  void sweep(Value begin, Value end);
  /// The same for runs that are stored one after the other, each with its lead.
  void sweepWithLeads(Value begin, Value end);

 private:
  struct Tile {
    Value begin, end;  ///< features
  };
  void rowsBetween(Value first, Value last, const Tile&);
  void runs(Value segment, Value feature, int64_t count, Value width, const Tile&);
  void addSums(ArrayRef<Value> sums, Value feature, int64_t count, const Tile&);
  void writeOneByOne(Value segment, Value feature, int64_t count, Value width);
  Replica replicaAt(Value segment, Value feature);

  PhaseLowering& p_;
  Loops& l_;
  Sweep& s_;
  int64_t together_ = p_.steps_.rows;  ///< features of a step
};

void PhaseLowering::ChannelStream::sweep(Value begin, Value end) {
  const Value zero = l_.index(0), features = p_.f_.features();
  if (!s_.slots) return rowsBetween(begin, end, {zero, features});
  l_.forEach(zero, features, kStreamTile, [&](Value from) {
    const Tile tile = {from, l_.min(l_.add(from, l_.index(kStreamTile)), features)};
    // Two levels: the sums of some segments are collected in the buffer, which is then added to the partials.
    Value some = l_.mul(p_.f_.rows(), l_.index(kLongestChain));
    auto collected = scf::ForOp::create(l_.b, l_.loc, begin, end, some);
    OpBuilder::InsertionGuard guard(l_.b);
    l_.b.setInsertionPointToStart(collected.getBody());
    Value first = collected.getInductionVar();
    Value width = l_.sub(tile.end, tile.begin);
    p_.buffer_->clear(s_.partials.size(), width);
    rowsBetween(first, l_.min(l_.add(first, some), end), tile);
    p_.buffer_->flush(s_.partials, tile.begin, width);
  });
}

void PhaseLowering::ChannelStream::sweepWithLeads(Value begin, Value end) {
  if (s_.slots) return sweep(begin, end);
  llvm::SaveAndRestore one(together_, int64_t(1));
  llvm::SaveAndRestore longer(p_.steps_.unroll, p_.largeUnroll(1));
  sweep(begin, end);
}

/// Emits the rows from `first` to `last` of the batch, segment after segment.
void PhaseLowering::ChannelStream::rowsBetween(Value first, Value last, const Tile& tile) {
  const Value rows = p_.f_.rows();
  auto [from, row] = p_.segmentAndRow(first);
  Value to = p_.segmentAndRow(l_.add(last, l_.sub(rows, l_.index(1)))).first;
  l_.forEach(from, to, 1, [&](Value segment) {
    Value origin = l_.mul(segment, rows);
    Value begin = l_.max(l_.sub(first, origin), l_.index(0));
    Value width = l_.sub(l_.min(l_.sub(last, origin), rows), begin);
    llvm::SaveAndRestore begins(p_.runBegin_, begin);
    Value whole = l_.add(tile.begin, l_.roundDown(l_.sub(tile.end, tile.begin), together_));
    l_.forEach(tile.begin, whole, together_, [&](Value f) { runs(segment, f, together_, width, tile); });
    if (together_ > 1) l_.forEach(whole, tile.end, 1, [&](Value f) { runs(segment, f, 1, width, tile); });
  });
}

auto PhaseLowering::ChannelStream::replicaAt(Value segment, Value feature) -> Replica {
  Replica r;
  r.at = {.segment = segment, .feature = feature, .chunk = p_.f_.task()};
  r.values = p_.shared_;
  p_.hoist(s_, r);
  return r;
}

/// Emits the runs of some features in a segment. A sum may not depend on where a run begins, so it has no
/// lead. Outputs with leads follow in a second pass.
void PhaseLowering::ChannelStream::runs(Value segment, Value feature, int64_t count, Value width,
                                        const Tile& tile) {
  Replicas replicas;
  for (int64_t i = 0; i < count; ++i) replicas.push_back(replicaAt(segment, l_.add(feature, l_.index(i))));
  const bool twice = p_.runsHaveLeads_ && s_.slots;
  llvm::SaveAndRestore later(s_.stores, !twice);
  const auto combiners = s_.combinersOf(count, p_.steps_.unroll);
  addSums(p_.along(s_, replicas, width, p_.identities(combiners, p_.schedule_.getVector())), feature, count,
          tile);
  if (twice) writeOneByOne(segment, feature, count, width);
}

/// Adds the sums of each run to the buffer, those of several features as one vector.
void PhaseLowering::ChannelStream::addSums(ArrayRef<Value> sums, Value feature, int64_t count,
                                           const Tile& tile) {
  const unsigned unroll = p_.steps_.unroll;
  for (size_t k = 0; k < s_.slots; ++k) {
    Values each;
    for (int64_t r = 0; r < count; ++r)
      each.push_back(l_.tree(sums.slice((r * s_.slots + k) * unroll, unroll)));
    const bool pack = count > 1 && p_.schedule_.getVector() > 1;
    for (int64_t r = 0; r < (pack ? 1 : count); ++r) {
      Value at = l_.add(l_.sub(feature, tile.begin), l_.index(r));
      p_.buffer_->add(k, at, pack ? p_.horizontals(each) : p_.horizontal(each[r]));
    }
  }
}

void PhaseLowering::ChannelStream::writeOneByOne(Value segment, Value feature, int64_t count, Value width) {
  s_.stores = true;
  llvm::SaveAndRestore summed(s_.collects, false);
  llvm::SaveAndRestore longer(p_.steps_.unroll, p_.largeUnroll(1));
  l_.forEach(l_.index(0), l_.index(count), 1, [&](Value i) {
    Replica one = replicaAt(segment, l_.add(feature, i));
    p_.along(s_, one, width, {});
  });
}

void PhaseLowering::channelStreamSweep(SweepOp op, Value begin, Value end) {
  Sweep s(partsOf(op));
  if (op.getCondition()) end = l_.select(mapped(op.getCondition(), shared_), end, begin);
  ChannelStream stream(*this, s);
  l_.when(l_.less(begin, end), {}, [&] {
    auto sweep = [&] { stream.sweep(begin, end); };
    if (!s.writes.empty()) return cutRuns(sweep, [&] { stream.sweepWithLeads(begin, end); });
    sweep();
    return Values();
  });
}

}  // namespace normc::codegen
