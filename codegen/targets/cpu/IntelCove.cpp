#include "codegen/targets/cpu/IntelCove.h"

namespace normc::codegen::cpu {

/// Elements of lines of which eight go together, or four, or, where sixteen registers are all, four rather than two.
static constexpr int64_t kEight = 192, kFour = 1024, kFourOfFew = 512;
/// Backward: longer ones are written in turn, until one alone fills a third of the first-level cache; then four go together.
static constexpr int64_t kTurnsFrom = 768, kTurnsTo = 2048, kFourBackward = 4096;
/// Forward, of whole lines: from here on a step of four rows has two vectors of each.
static constexpr int64_t kTwoVectors = 512;
/// Elements of the least group of a row whose outputs are worth writing in turn.
static constexpr int64_t kShortGroup = 64;
/// Elements of x that a second-level cache of 2 MiB keeps with dy and dx, and the features from which on columns of a backward
/// are worth it for all of them; sums about a mean, of which there are more, for fewer.
static constexpr int64_t kSplitElements = 128 << 10, kSplitFeatures = 2048, kSplitCentered = 1536, kSplitRows = 16;
/// Bytes of a row whose sums leave the first-level cache.
static constexpr int64_t kLongRowBytes = 32 << 10;
static constexpr int64_t kOneStrip = 256, kTwoStrips = 1024;
/// Bytes of x from which on a second thread pays.
static constexpr int64_t kOneThreadsBytes = 128 << 10;

static bool rowsAreUnaligned(const Problem& problem) {
  return !problem.features || *problem.features * bytes(problem.data) % kCacheLine != 0;
}

static void tuneBackward(const Problem& problem, Schedule& s, bool squaresOnly, bool registerPairs) {
  const int64_t width = statisticWidth(problem);
  if (width <= kEight) {
    if (squaresOnly && !registerPairs) s.rows = 2, s.unroll = 4, s.ahead = true;
    return;
  }
  s.rows = width < kFourBackward ? 2 : 4, s.unroll = 8 / s.rows;
  s.inTurn = !registerPairs && rowsAreUnaligned(problem) && width > kTurnsFrom && width < kTurnsTo;
}

static void tuneForward(const Problem& problem, Schedule& s, bool squaresOnly, bool registerPairs) {
  const int64_t width = statisticWidth(problem);
  const bool unaligned = rowsAreUnaligned(problem);
  // Of a whole row in a step, and what is left of it.
  if (squaresOnly && s.scalarTail && width <= kEight) return;
  if (width <= kFour && (squaresOnly || unaligned || width <= kEight)) {
    if (registerPairs) return;
    s.rows = width <= kEight && !squaresOnly ? 8 : 4;
    s.unroll = width <= kEight ? 1 : 2;
    s.ahead = false, s.inTurn = true;
  } else if (unaligned && !(squaresOnly && registerPairs)) {
    s.rows = squaresOnly ? 1 : 2, s.unroll = 4, s.inTurn = !squaresOnly;
  } else if (!unaligned && !squaresOnly && !registerPairs && width >= kTwoVectors && width < kFour) {
    s.unroll = 2;
  }
}

/// Rows of less than a page that fill their lines need strips of half a KiB, so that threads which have neighbouring ones do not
/// fetch each other's lines; elsewhere a strip is as wide as registers allow.
static void tuneColumns(const Problem& problem, Schedule& s) {
  s.rows = 1;
  const int64_t row = problem.features.value_or(0) * bytes(problem.data);
  if (row < kPage && !rowsAreUnaligned(problem)) {
    if (row >= kTwoStrips) s.tile = 8;
    return;
  }
  s.tile = problem.entry == Entry::Backward || problem.spec->needsBatchStatistics() || row >= kLongRowBytes ? 8 : 16;
}

/// Two rows, a piece of each long enough to be written at once.
static void tuneStream(Schedule& s) { s.rows = 2, s.unroll = 8; }

/// Rows whose groups are scaled one by one, f32: of each a step has as much as registers hold, and none goes ahead.
static void tuneGroups(const Problem& problem, Schedule& s) {
  const int64_t width = statisticWidth(problem);
  const bool unaligned = width * bytes(problem.data) % kCacheLine != 0, backward = problem.entry == Entry::Backward;
  if (unaligned ? width < kShortGroup || (backward && width >= kTwoVectors) : backward ? width < 2 * kShortGroup || s.rows != 2 : width < kShortGroup / 2) return;
  s.rows = unaligned ? 2 : 4, s.unroll = 8 / s.rows;
  s.ahead = false, s.inTurn = unaligned;
}

/// Two rows of two vectors, as many as sixteen registers hold of a backward that adds up first and writes then.
static void tuneForSixteenRegisters(const Problem& problem, Schedule& s, bool squaresOnly) {
  const bool unaligned = rowsAreUnaligned(problem), backward = problem.entry == Entry::Backward;
  if (usesColumnTiles(problem, s.strategy)) return;
  if (problem.spec->perFeature()) return tuneStream(s);
  if (backward && squaresOnly && !unaligned) return;
  if (backward || statisticWidth(problem) > kFourOfFew) s.rows = 2, s.unroll = 2, s.ahead = false;
  s.inTurn = (unaligned || backward) && s.rows > 1;
}

void tuneForIntelCove(const Problem& problem, const Isa& isa, Schedule& s) {
  const bool perRow = !problem.spec->perFeature(), squaresOnly = problem.spec->center == Center::None;
  if (problem.layout == Layout::ChannelsFirst) {
    s.inTurn = canStoreInTurn(problem, s.strategy);
    return;
  }
  if (problem.spec->pre) {
    if (isa.registers >= 32 && problem.data == DType::F32 && statisticWidth(problem) && problem.entry != Entry::Infer) tuneGroups(problem, s);
    return;
  }
  // Groups within a row were not measured.
  if (perRow && problem.groups(problem.spec->groups) > 1) return;
  if (perRow ? problem.spec->reduce != Reduce::Features : problem.entry == Entry::Infer && !usesColumnTiles(problem, s.strategy)) return;
  if (isa.registers < 32) return tuneForSixteenRegisters(problem, s, squaresOnly);
  // Of 16-bit numbers a vector is two registers: half as many of them are a step.
  const bool registerPairs = s.vector * bytes(problem.statistics()) > isa.vectorBytes;
  const Schedule before = s;
  if (usesColumnTiles(problem, s.strategy)) tuneColumns(problem, s);
  else if (!perRow) tuneStream(s);
  else if (problem.entry == Entry::Backward) tuneBackward(problem, s, squaresOnly, registerPairs);
  else tuneForward(problem, s, squaresOnly, registerPairs);
  if (registerPairs && s.unroll != before.unroll) s.unroll = std::max<int64_t>(s.unroll / 2, 1);
  if (registerPairs && s.tile != before.tile) s.tile /= 2;
}

/// A strip of such rows is all there is, or threads have strips in the same pages, where what one fetches ahead the other
/// has written: one thread is at most 8 % faster than by rows there, two take nearly twice as long.
static bool threadsShareCacheLines(const Problem& problem) {
  const int64_t row = problem.features.value_or(0) * bytes(problem.data);
  return !rowsAreUnaligned(problem) && row <= (problem.entry == Entry::Backward ? kPage / 2 : kOneStrip);
}

/// Rows of whole columns that pay however large x is, since what streams leave to be added up is as long as such rows.
static int64_t fewRows(const Problem& problem, const Isa& isa, int64_t row) {
  const bool batch = problem.spec->needsBatchStatistics();
  if (isa.registers >= 32) return row >= kLongRowBytes ? 128 : 0;
  if (batch) return row >= (problem.entry == Entry::Backward ? kLongRowBytes : 2 * kPage) ? 64 : 0;
  return row >= 4 * kLongRowBytes ? 32 : 0;
}

/// Bytes of x up to which whole columns are faster, since what their strips read stays in cache.
static std::optional<int64_t> bytesInCache(const Problem& problem, const Isa& isa, int64_t row) {
  const bool crowded = pageOffsetsOfRows(problem) <= 2, batch = problem.spec->needsBatchStatistics();
  if (isa.registers < 32) {
    if (problem.entry != Entry::Backward || rowsAreUnaligned(problem)) return std::nullopt;
    return 64 << 10;
  }
  if (threadsShareCacheLines(problem)) return kOneThreadsBytes;
  const bool longer = batch && row >= kLongRowBytes / 2;
  if (problem.entry == Entry::Backward) return longer ? 2 << 20 : crowded ? 768 << 10 : 1 << 20;
  return crowded ? (longer ? 8 << 20 : 3 << 19) : batch ? 4 << 20 : 2 << 20;
}

std::optional<int64_t> residentBytesOnIntelCove(const Problem& problem, const Isa& isa) {
  const int64_t row = problem.features.value_or(0) * bytes(problem.data);
  const std::optional<int64_t> cached = bytesInCache(problem, isa, row);
  const int64_t few = fewRows(problem, isa, row) * row;
  return few > 0 ? std::max(few, cached.value_or(0)) : cached;
}

int64_t splitRowsOnIntelCove(const Problem& problem, const Isa& isa) {
  const int64_t features = problem.features.value_or(0), least = problem.spec->center != Center::None ? kSplitCentered : kSplitFeatures;
  if (isa.registers < 32 || features < least) return 0;
  return std::max(kSplitElements / features, kSplitRows);
}

}  // namespace normc::codegen::cpu
