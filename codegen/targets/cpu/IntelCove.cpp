#include "codegen/targets/cpu/IntelCove.h"

namespace normc::codegen::cpu {

/// Widths up to which eight rows go together, or four, or, with sixteen registers, four instead of two.
static constexpr int64_t kEight = 192, kFour = 1024, kFourOfFew = 512;
/// Backward: wider rows are stored in turn, up to the width at which one row fills a third of the first-level
/// cache. From kFourBackward on four rows go together.
static constexpr int64_t kTurnsFrom = 768, kTurnsTo = 2048, kFourBackward = 4096;
/// Forward, rows of whole cache lines: from this width on a step of four rows has two vectors of each.
static constexpr int64_t kTwoVectors = 512;
/// The elements of the smallest group of a row whose outputs are worth storing in turn.
static constexpr int64_t kShortGroup = 64;
/// The elements of x that a second-level cache of 2 MiB holds together with dy and dx, and the features from
/// which on the columns of a backward pay for all of them. Sums about a mean are more sums, so they need
/// fewer features.
static constexpr int64_t kSplitElements = 128 << 10, kSplitFeatures = 2048, kSplitCentered = 1536,
                         kSplitRows = 16;
/// The bytes of a row whose sums no longer fit in the first-level cache.
static constexpr int64_t kLongRowBytes = 32 << 10;
static constexpr int64_t kOneStrip = 256, kTwoStrips = 1024;
/// The bytes of x from which on a second thread pays.
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
  // With a scalar tail the step already has the whole row and its rest.
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

/// Rows shorter than a page and of whole cache lines need strips of half a KiB: with narrower strips, threads
/// that work on neighbouring strips prefetch each other's cache lines. Otherwise a strip is as wide as
/// registers allow.
static void tuneColumns(const Problem& problem, Schedule& s) {
  s.rows = 1;
  const int64_t row = problem.features.value_or(0) * bytes(problem.data);
  if (row < kPage && !rowsAreUnaligned(problem)) {
    if (row >= kTwoStrips) s.tile = 8;
    return;
  }
  s.tile = isBackward(problem.entry) || problem.needsBatchStatistics() || row >= kLongRowBytes ? 8 : 16;
}

/// Two rows with a long piece of each, so that stores to one row follow each other.
static void tuneStream(Schedule& s) { s.rows = 2, s.unroll = 8; }

/// f32 rows whose groups are scaled one by one: a step has as much of each row as the registers hold, and is
/// not software-pipelined.
static void tuneGroups(const Problem& problem, Schedule& s) {
  const int64_t width = statisticWidth(problem);
  const bool unaligned = width * bytes(problem.data) % kCacheLine != 0, backward = isBackward(problem.entry);
  if (unaligned  ? width < kShortGroup || (backward && width >= kTwoVectors)
      : backward ? width < 2 * kShortGroup || s.rows != 2
                 : width < kShortGroup / 2)
    return;
  s.rows = unaligned ? 2 : 4, s.unroll = 8 / s.rows;
  s.ahead = false, s.inTurn = unaligned;
}

/// Two rows of two vectors are what sixteen registers hold in a backward that first adds up and then writes.
static void tuneForSixteenRegisters(const Problem& problem, Schedule& s, bool squaresOnly) {
  const bool unaligned = rowsAreUnaligned(problem), backward = isBackward(problem.entry);
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
    if (isa.registers >= 32 && problem.data == DType::F32 && statisticWidth(problem) &&
        problem.entry != Entry::Infer)
      tuneGroups(problem, s);
    return;
  }
  // Several groups in a row have not been measured.
  if (perRow && problem.groups(problem.spec->groups) > 1) return;
  if (perRow ? problem.spec->reduce != Reduce::Features
             : problem.entry == Entry::Infer && !usesColumnTiles(problem, s.strategy))
    return;
  if (isa.registers < 32) return tuneForSixteenRegisters(problem, s, squaresOnly);
  // A vector of 16-bit numbers is two registers as f32, so a step has half as many vectors.
  const bool registerPairs = s.vector * bytes(problem.statistics()) > isa.vectorBytes;
  const Schedule before = s;
  if (usesColumnTiles(problem, s.strategy))
    tuneColumns(problem, s);
  else if (!perRow)
    tuneStream(s);
  else if (isBackward(problem.entry))
    tuneBackward(problem, s, squaresOnly, registerPairs);
  else
    tuneForward(problem, s, squaresOnly, registerPairs);
  if (registerPairs && s.unroll != before.unroll) s.unroll = std::max<int64_t>(s.unroll / 2, 1);
  if (registerPairs && s.tile != before.tile) s.tile /= 2;
}

/// True if the row is a single strip, or threads would write strips in the same pages, where one prefetches
/// what the other has written. There columns are at most 8 % faster on one thread, and take nearly twice as
/// long on two.
static bool threadsShareCacheLines(const Problem& problem) {
  const int64_t row = problem.features.value_or(0) * bytes(problem.data);
  return !rowsAreUnaligned(problem) && row <= (isBackward(problem.entry) ? kPage / 2 : kOneStrip);
}

/// Returns the number of rows up to which whole columns pay whatever the size of x, because the sums of a
/// stream are as long as such rows.
static int64_t fewRows(const Problem& problem, const Isa& isa, int64_t row) {
  const bool batch = problem.needsBatchStatistics();
  if (isa.registers >= 32) return row >= kLongRowBytes ? 128 : 0;
  if (batch) return row >= (isBackward(problem.entry) ? kLongRowBytes : 2 * kPage) ? 64 : 0;
  return row >= 4 * kLongRowBytes ? 32 : 0;
}

/// Returns the bytes of x up to which whole columns are faster, because what their strips read stays in
/// cache.
static std::optional<int64_t> bytesInCache(const Problem& problem, const Isa& isa, int64_t row) {
  const bool crowded = pageOffsetsOfRows(problem) <= 2, batch = problem.needsBatchStatistics();
  if (isa.registers < 32) {
    if (!isBackward(problem.entry) || rowsAreUnaligned(problem)) return std::nullopt;
    return 64 << 10;
  }
  if (threadsShareCacheLines(problem)) return kOneThreadsBytes;
  const bool longer = batch && row >= kLongRowBytes / 2;
  if (isBackward(problem.entry)) return longer ? 2 << 20 : crowded ? 768 << 10 : 1 << 20;
  return crowded ? (longer ? 8 << 20 : 3 << 19) : batch ? 4 << 20 : 2 << 20;
}

std::optional<int64_t> residentBytesOnIntelCove(const Problem& problem, const Isa& isa) {
  const int64_t row = problem.features.value_or(0) * bytes(problem.data);
  const std::optional<int64_t> cached = bytesInCache(problem, isa, row);
  const int64_t few = fewRows(problem, isa, row) * row;
  return few > 0 ? std::max(few, cached.value_or(0)) : cached;
}

int64_t splitRowsOnIntelCove(const Problem& problem, const Isa& isa) {
  const int64_t features = problem.features.value_or(0),
                least = problem.spec->center != Center::None ? kSplitCentered : kSplitFeatures;
  if (isa.registers < 32 || features < least) return 0;
  return std::max(kSplitElements / features, kSplitRows);
}

}  // namespace normc::codegen::cpu
