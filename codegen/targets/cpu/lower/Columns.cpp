// Columns: statistics of features, a tile of vectors of them at a time, swept over rows.
#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace normc::codegen {

void PhaseLowering::columns(SlabOp s, Value begin, Value end) {
  if (s.isAcrossChannels()) return acrossChannels(s, begin, end);
  if (s.isPer(Axis::Segment))
    return l_.forEach(begin, end, 1, [&](Value segment) {
      if (searchesRows(s)) (void)validPlaces(segment);
      columnTiles(s, l_.index(0), f_.features(), {.segment = segment, .chunk = f_.task()});
    });
  bool own = f_.phase().isOverFeatures();
  columnTiles(s, own ? begin : l_.index(0), own ? end : f_.features(), {.chunk = f_.task()});
}

int64_t PhaseLowering::tileOf(SlabOp s) {
  if (!s.hasSweeps()) return 1;
  const auto features = Loops::constant(f_.features());
  const int64_t lanes = schedule_.getVector(), vectors = schedule_.getTile();
  if (!features) return vectors;
  const int64_t fill = schedule_.getScalarTail() ? *features / lanes : llvm::divideCeil(*features, lanes);
  return std::clamp<int64_t>(fill, 1, vectors);
}

/// Returns the last tile if the features do not fill it. A rest of less than half a tile is joined to the
/// tile before: a pass over all rows for each vector costs nearly as much as a pass for a tile.
std::optional<PhaseLowering::LastTile> PhaseLowering::lastTile(SlabOp s) {
  auto features = Loops::constant(f_.features());
  const int64_t lanes = schedule_.getVector(), vectors = tileOf(s);
  if (!features || !s.hasSweeps()) return std::nullopt;
  const int64_t rest = *features % (vectors * lanes), more = llvm::divideCeil(rest, lanes);
  if (rest == 0 || (schedule_.getScalarTail() && *features % lanes)) return std::nullopt;
  const bool together = *features > vectors * lanes && 2 * more < vectors;
  return LastTile{*features - rest - (together ? vectors * lanes : 0), more + (together ? vectors : 0),
                  *features % lanes};
}

/// True if tiles fill the features of every task. With features last, phases over features are cut at
/// multiples of a tile (Partition.cpp).
bool PhaseLowering::fillsTiles(int64_t tile) {
  const auto features = Loops::constant(f_.features());
  return features && *features % tile == 0 && (f_.featuresLast() || !f_.phase().isOverFeatures());
}

void PhaseLowering::columnTiles(SlabOp s, Value begin, Value end, Coordinates at) {
  int64_t lanes = schedule_.getVector(), vectors = tileOf(s);
  if (fillsTiles(vectors * lanes))
    return l_.forEach(begin, end, vectors * lanes, [&](Value f) { columnTile(s, at, f, vectors); });
  if (auto last = lastTile(s)) {
    // The task that has the first feature of the last tile does all of it.
    Value first = l_.index(last->begin);
    if (last->begin)
      l_.forEach(begin, l_.min(end, first), vectors * lanes, [&](Value f) { columnTile(s, at, f, vectors); });
    Value mine = l_.both(l_.less(begin, l_.add(first, l_.index(1))), l_.less(first, end));
    l_.when(mine, {}, [&] {
      columnTile(s, at, first, last->vectors, last->rest ? l_.index(last->rest) : Value());
      return Values();
    });
    return;
  }
  Value size = l_.sub(end, begin);
  Value tiles = l_.add(begin, l_.roundDown(size, vectors * lanes)),
        whole = l_.add(begin, l_.roundDown(size, lanes));
  l_.forEach(begin, tiles, vectors * lanes, [&](Value f) { columnTile(s, at, f, vectors); });
  if (vectors > 1) l_.forEach(tiles, whole, lanes, [&](Value f) { columnTile(s, at, f, 1); });
  if (schedule_.getScalarTail()) {
    llvm::SaveAndRestore scalars(lanes_, int64_t(0));
    return l_.forEach(whole, end, 1, [&](Value f) { columnTile(s, at, f, 1); });
  }
  l_.when(l_.less(whole, end), {}, [&] {
    columnTile(s, at, whole, 1, l_.sub(end, whole));
    return Values();
  });
}

void PhaseLowering::columnTile(SlabOp s, Coordinates at, Value feature, int64_t vectors, Value rest) {
  Replicas replicas(vectors);
  for (int64_t v = 0; v < vectors; ++v) {
    replicas[v].at = at;
    replicas[v].at.feature = l_.add(feature, l_.index(v * lanes_));
    replicas[v].values = shared_;
  }
  llvm::SaveAndRestore of(lastMask_, rest ? f_.laneMask(rest, lanes_) : Value());
  llvm::SaveAndRestore none(laneMask_);
  body(s, replicas);
}

//===-- Shift estimates -------------------------------------------------------------===//

void PhaseLowering::allocateShifts(SlabOp s) {
  shifts_ = {};
  const auto last = lastTile(s);
  const int64_t vectors = std::max(tileOf(s), last ? last->vectors : 0);
  if (s.hasSweeps() && vectors > 1 && !s.getOps<ProbeOp>().empty())
    shifts_ = StackMemory(l_, vectors * lanes_, f_.statistics(), kCacheLine);
}

/// A loop, because an estimate loads 8 or 24 rows: written out for each vector they would be most of the
/// kernel. The last vector, if it has a mask, is not one of the loop.
void PhaseLowering::probeTile(ProbeOp op, Replicas& replicas) {
  const Value last = l_.index(int64_t(replicas.size() - 1) * lanes_);
  auto estimate = [&](Value offset) {
    Replica r{.at = replicas[0].at};
    r.at.feature = l_.add(r.at.feature, offset);
    shifts_.store(l_, offset, l_.broadcast(probe(op, r), lanes_));
  };
  laneMask_ = {};
  l_.forEach(l_.index(0), lastMask_ ? last : l_.add(last, l_.index(lanes_)), lanes_, estimate);
  laneMask_ = lastMask_;
  if (lastMask_) estimate(last);
  for (auto [v, r] : llvm::enumerate(replicas))
    r.values.map(op.getValue(), shifts_.load(l_, l_.index(int64_t(v) * lanes_), lanes_));
}

}  // namespace normc::codegen
