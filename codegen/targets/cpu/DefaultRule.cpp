#include "codegen/targets/cpu/DefaultRule.h"

#include <algorithm>

namespace normc::codegen::cpu {

/// The bytes of x in the smallest task that is worth a thread if tasks leave sums per feature. Kernels that
/// read x once may have half of that in a task of at least kTaskRows rows.
static constexpr int64_t kTaskBytes = 256 << 10, kTaskRows = 16;
/// The same if the rows of a feature are contiguous: a task begins again in each channel, so its pieces are
/// long.
static constexpr int64_t kRunsTaskBytes = 1 << 20, kRunsTaskRows = 1024;
/// The bytes of x of a task that has a piece of every row. A backward does four times as much work with them.
static constexpr int64_t kSplitBytes = 64 << 10, kSplitBytesBackward = 32 << 10;
/// Wider statistics hide the latency of their root and division in the work of the row itself.
static constexpr int64_t kShortWidth = 128;
/// From this width on two rows with several vectors in a step fill the units of a core.
static constexpr int64_t kMiddleWidth = 768;
/// From this width on each row is worked on alone.
static constexpr int64_t kLongWidth = 16384;
/// Widths for statistics that are sums of squares alone: up to the first half registers are used, from the
/// first to the second one row at a time.
static constexpr int64_t kSquaresWidth = 1024, kLongSquaresWidth = 4096;

/// Rows of up to this many bytes are processed one at a time in large calls; for rows of 16-bit types and
/// less than half of it eight together are faster.
static constexpr int64_t kShortRowBytes = 4 << 10;

/// True if the rest of a row, which does not fill a vector, is processed in halves and quarters of a vector
/// instead of under a mask: if one or two of them are enough, and without AVX-512, where a masked store takes
/// as long as a dozen others.
static bool endsInHalves(const Problem& problem, const Isa& isa, const Schedule& s) {
  if (problem.data != DType::F32 || problem.params != DType::F32 || !problem.features ||
      problem.layout != Layout::FeaturesLast)
    return false;
  if (usesColumnTiles(problem, s.strategy) || s.strategy == Strategy::Split || problem.spec->pre)
    return false;
  const int64_t run = problem.spec->perFeature() ? *problem.features : statisticWidth(problem),
                rest = run % s.vector;
  return rest && run > s.vector && (isa.registers < 32 || rest <= 2);
}

/// Returns the number of rows whose x has `size` bytes, between 1 and `most`.
static int64_t rowsOf(int64_t size, const Problem& problem, int64_t most) {
  return std::clamp<int64_t>(size / (problem.features.value_or(kUnknownFeatures) * bytes(problem.data)), 1,
                             most);
}

int64_t lanesForWidth(int64_t width, int64_t lanes) {
  while (lanes > 2 &&
         (width < lanes || (width < 4 * lanes && width % lanes != 0 && width % (lanes / 2) == 0)))
    lanes /= 2;
  return lanes;
}

/// True if the only statistic is a sum of squares: then there is little arithmetic for each element.
static bool squaresOnly(const Problem& problem) {
  return problem.spec->center == Center::None && problem.spec->reduce == Reduce::Features;
}

/// True if a row of f32 is so short that a step may hold half of it or all, and rows begin inside cache
/// lines. Many rows in a step would then leave many cache lines half written.
static bool isShortUnalignedRow(const Problem& problem, const Isa& isa) {
  if (isa.vectorBytes < kCacheLine || problem.data != DType::F32 || problem.spec->pre ||
      !splitsCacheLines(problem))
    return false;
  int64_t most = kShortWidth;
  if (!problem.spec->perFeature())
    most = 7 * kShortWidth / 4;
  else if (problem.entry == Entry::Forward || problem.needsBatchStatistics())
    most = 5 * kShortWidth / 4;
  return *problem.features > kShortWidth / 2 && *problem.features < most;
}

/// True if the outputs of a row need nothing but sums per feature, or one sum of squares.
static bool sharesOnlySums(const Problem& problem) {
  if (problem.spec->perFeature()) return !isMap(problem);
  return squaresOnly(problem) && !isBackward(problem.entry);
}

/// True if an element needs an exponential, whose instructions take longer than its loads and stores.
static bool computesExponential(const Problem& problem) {
  const Spec& spec = *problem.spec;
  const auto isExponential = [](Activation f) { return f != Activation::None && f != Activation::Relu; };
  return isExponential(spec.activation) || (spec.gate && isExponential(spec.gate->function));
}

/// True if a vector of bf16 fills a register of AVX-512, and so two registers as f32: one shuffle splits it
/// and one instruction joins it.
static bool usesRegisterPairs(const Problem& problem, const Isa& isa) {
  return isa.masks16 && problem.data == DType::BF16 && problem.layout == Layout::FeaturesLast;
}

/// Returns the rows of a step. Rows that go together share the loads of parameters and one update of the sums
/// per feature; a long row alone uses several accumulators instead.
static int64_t rowsTogether(const Problem& problem, const Isa& isa, bool ahead) {
  const bool wide = isa.registers >= 32, perFeature = problem.spec->perFeature();
  const bool backward = isBackward(problem.entry);
  // The length of a run is unknown and may be a page. So the step has few runs: enough to share the cost of a
  // statistic, and they fit in the first-level cache.
  if (problem.layout == Layout::ChannelsFirst)
    return (backward ? 2 : 4) * (isAcrossChannels(problem) ? 2 : 1);
  const int64_t width = statisticWidth(problem), offsets = pageOffsetsOfRows(problem);
  if (isShortUnalignedRow(problem, isa) && sharesOnlySums(problem)) return 2;
  if (!perFeature && width) {
    if (width > kLongWidth) return 1;
    const bool narrow = problem.data != DType::F32;
    if (wide && !narrow && !backward && squaresOnly(problem) && width > kSquaresWidth &&
        width <= kLongSquaresWidth)
      return 1;
    // Sixteen registers do not hold the values of two centred rows.
    if (!wide && backward && !squaresOnly(problem) && width > kShortWidth && width <= 2 * kMiddleWidth)
      return 1;
    if (width > kMiddleWidth && !backward && usesRegisterPairs(problem, isa)) return 4;
    if (width > kMiddleWidth || (ahead && backward)) return 2;
  }
  // A backward of scaled groups has five values for each row, of two registers each.
  if (perFeature && ahead && backward && usesRegisterPairs(problem, isa)) return 2;
  // Rows at the same offset in a page evict each other from the first-level cache: two of them and their
  // outputs still fit. If they begin one cache line apart, a load waits for the store to the neighbouring
  // row, since the processor compares only the offsets.
  if (offsets == 1 || (problem.features && pageDistanceOfRows(problem, 1) <= kCacheLine)) return 2;
  if (perFeature && offsets == 2) return wide && backward && splitsCacheLines(problem) ? 2 : 4;
  // Without sums rows have nothing to share.
  if (perFeature && isMap(problem) && !problem.spec->pre) return 1;
  // The same holds for any two rows of a step.
  const int64_t conflictFree =
      perFeature && offsets > 2 ? std::max<int64_t>(rowsWithoutPageConflict(problem), 2) : 8;
  if (!wide || !problem.features) return std::min<int64_t>(conflictFree, 4);
  // Many narrow rows share the cost of one statistic. A backward has no registers for eight.
  if (width && ahead && !backward && width < kShortWidth && squaresOnly(problem) &&
      !usesRegisterPairs(problem, isa))
    return 4;
  if (width) return std::min<int64_t>(conflictFree, !backward && width <= 3 * kShortWidth ? 8 : 4);
  return conflictFree;
}

/// Returns the `split` schedule, whose first sweep goes along rows and whose second goes down columns. Lanes
/// and tails are those of `s`. It has few rows, which leaves registers for wide tiles.
static Schedule splitSchedule(const Problem& problem, const Isa& isa, Schedule s) {
  const int64_t halves = usesRegisterPairs(problem, isa) ? 2 : 1;
  const bool backward = isBackward(problem.entry);
  s.rows = 1, s.unroll = 4 / halves, s.tile = (isa.registers >= 32 ? 8 : backward ? 2 : 4) / halves;
  s.grain = (backward ? kSplitBytesBackward : kSplitBytes) / bytes(problem.data);
  s.stream = 0, s.ahead = false, s.fetch = false;
  return s;
}

/// Returns the vectors of a row in a step: as many accumulators as hide the latency of an addition and fit in
/// the registers.
static int64_t unrollOf(const Problem& problem, const Isa& isa, const Schedule& s) {
  const int64_t width = statisticWidth(problem), offsets = pageOffsetsOfRows(problem);
  const bool wide = isa.registers >= 32, backward = isBackward(problem.entry);
  if (problem.layout == Layout::ChannelsFirst) return 1;
  if (s.rows == 2 && isShortUnalignedRow(problem, isa) && sharesOnlySums(problem))
    return *problem.features < kShortWidth ? 4 : 8;
  if (s.rows != 2) return s.rows == 1 ? 4 : 1;
  // In a backward sixteen registers hold the values of one vector in two rows.
  if (s.ahead || (!wide && width && backward)) return 1;
  const bool many = problem.spec->perFeature()
                        ? (offsets == 1 || (offsets == 2 && splitsCacheLines(problem))) && backward
                        : width > kMiddleWidth && offsets > 1;
  return wide && many ? 4 : 2;
}

/// Returns the vectors of a row in a strip of columns: 256 bytes, unless sixteen registers would not hold the
/// sums of a backward.
static int64_t tileOf(const Problem& problem, const Isa& isa) {
  // If rows begin at few offsets in a page, the rows of a strip share few sets of the cache, and wide strips
  // go through these sets less often.
  if (pageOffsetsOfRows(problem) <= 2) return 8;
  // If strips end inside cache lines, wide strips read fewer lines twice.
  const bool manyFeatures =
      problem.features && *problem.features > kShortWidth / 2 && problem.data == DType::F32;
  if (isa.registers >= 32 && manyFeatures && problem.entry == Entry::Forward && splitsCacheLines(problem))
    return 8;
  // If the next row begins at the neighbouring cache line of a page, a narrow strip has read it before a
  // store with the same offset is made.
  if (rowsWithoutPageConflict(problem) == 1) return 2;
  return isa.registers >= 32 || isBackward(problem.entry) ? 4 : 8;
}

/// True if the last sweep of a row reads an X-sized tensor that the sums of the row do not need.
static bool readsBesideOutput(const Problem& problem) {
  const Spec& spec = *problem.spec;
  const bool gate = spec.gate && !spec.gate->before && spec.gate->per == Per::Row;
  return gate || spec.hasResidual(/*after=*/true);
}

/// Returns the rows of a step in a large call. Rows share parameters and sums, and the next rows are
/// prefetched; without prefetch many concurrent streams are slower than one. A narrow row alone is written so
/// soon that memory is hardly idle, unless its type has to be converted, an exponential computed, or another
/// tensor read.
static int64_t rowsOfLargeCall(const Problem& problem, Strategy strategy) {
  if (isAcrossChannels(problem)) return 4;
  // A task may have fewer channels than a step would take.
  if (problem.layout == Layout::ChannelsFirst) return strategy == Strategy::Streamed ? 1 : 4;
  const bool wide = bytes(problem.data) > 2, backward = isBackward(problem.entry);
  if (problem.spec->perFeature()) {
    // With one sweep x is read and written once. With batch statistics the second sweep reads what the first
    // left in caches. Groups that are scaled one by one need few registers, and prefetch the next row.
    if (problem.data == DType::BF16 && backward && !problem.needsBatchStatistics())
      return problem.spec->pre ? 1 : 2;
    return !problem.spec->pre && (wide || backward) ? 8 : 4;
  }
  if (problem.spec->reduce != Reduce::Features) return 1;
  if (backward) return 4;
  const int64_t width = statisticWidth(problem), size = width * bytes(problem.data);
  if (problem.spec->rope) return 4;  // two vectors of each: a pair
  if (!wide) return squaresOnly(problem) && 2 * size < kShortRowBytes ? 8 : 4;
  if (size <= kShortRowBytes && readsBesideOutput(problem)) return 4;
  if (size <= kShortRowBytes && !computesExponential(problem)) return 1;
  // Registers hold the addresses of four rows that each have a segment of their own, or that lie in four
  // tensors.
  const bool manyAddresses = problem.segmented || problem.spec->residual;
  return problem.data == DType::F32 && width <= kLongWidth / 2 && !manyAddresses ? 8 : 4;
}

/// True if the features of a vector, which `rope` turns, have mates that are one vector too, or the vector
/// itself (lower/PairLowering.h).
static bool fitsPairs(const Problem& problem, int64_t lanes) {
  const auto& rope = *problem.spec->rope;
  if (!problem.features) return false;
  const int64_t run = *problem.features / problem.groups(rope.groups),
                pairs = problem.pairs(*problem.features);
  return run % lanes == 0 && (rope.pairs == Pairs::Interleaved ? 2 * pairs : pairs) % lanes == 0;
}

/// Chooses the lanes that fit pairs best. Where none do, each lane finds its own mate, which takes so many
/// instructions that a step has one vector.
static void fitPairs(const Problem& problem, Schedule& s) {
  int64_t lanes = s.vector;
  while (lanes > 4 && !fitsPairs(problem, lanes)) lanes /= 2;
  if (fitsPairs(problem, lanes)) {
    s.vector = lanes;
    // A step has both features of a pair.
    if (problem.spec->rope->pairs == Pairs::Half && s.unroll == 1)
      s.unroll = 2, s.rows = std::min<int64_t>(s.rows, 4);
    return;
  }
  s.rows = s.unroll = 1, s.stream = 0;
  s.ahead = s.fetch = false;
}

Schedule ruleSchedule(const Problem& problem, const Isa& isa, Strategy strategy) {
  Schedule s;
  s.strategy = strategy;
  s.vector = isa.vectorBytes / bytes(problem.statistics());
  const int64_t width = statisticWidth(problem);
  // bf16 is rounded in lanes of 16 bits, a full register of them at a time; f16 has an instruction.
  const bool fills = isa.masks16 || (problem.features && *problem.features % (2 * s.vector) == 0);
  if (problem.data == DType::BF16 && problem.layout == Layout::FeaturesLast && fills) s.vector *= 2;
  if (width) s.vector = lanesForWidth(width, s.vector);
  const bool perFeature = problem.spec->perFeature();
  const bool perRow = !perFeature && problem.spec->reduce == Reduce::Features;
  const bool waitsForStatistic =
      width <= kShortWidth || (sharesOnlySums(problem) && isShortUnalignedRow(problem, isa));
  s.ahead = problem.features && width > 0 && waitsForStatistic;
  s.rows = rowsTogether(problem, isa, s.ahead);
  s.unroll = unrollOf(problem, isa, s);
  s.tile = tileOf(problem, isa);
  if (usesRegisterPairs(problem, isa))
    s.unroll = std::max<int64_t>(s.unroll / 2, 1), s.tile = std::max<int64_t>(s.tile / 2, 1);
  // A task is worth waking a thread for, and the partial sums that it leaves are little work compared with
  // it.
  const bool partials = perFeature || isBackward(problem.entry);
  if (isAcrossChannels(problem)) s.grain = rowsOf(kRunsTaskBytes, problem, 4096);
  if (problem.layout == Layout::FeaturesLast && (perFeature || perRow)) {
    s.grain = rowsOf(partials ? kTaskBytes : kTaskBytes / 4, problem, 512);
    if (partials && perRow)
      s.grain = std::min(s.grain, std::max(rowsOf(kTaskBytes / 2, problem, 512), kTaskRows));
  }
  if (problem.layout == Layout::ChannelsFirst && strategy == Strategy::Streamed)
    s.grain = std::max(rowsOf(kRunsTaskBytes, problem, 4096), kRunsTaskRows);
  s.scalarTail = (hasNarrowElements(problem) && !isa.masks16) || endsInHalves(problem, isa, s);
  s.fetch = perRow || (problem.layout == Layout::FeaturesLast && perFeature);
  s.stream = rowsOfLargeCall(problem, strategy);
  if (usesColumnTiles(problem, strategy)) {
    // In wide tiles of a backward the terms of two rows are added first, so that sums are updated half as
    // often.
    s.rows = isa.registers >= 32 && tileOf(problem, isa) > 4 && isBackward(problem.entry) ? 2 : 1;
    s.unroll = 1, s.stream = 0, s.fetch = false;
  }
  if (strategy == Strategy::Split) return splitSchedule(problem, isa, s);
  return s;
}

void fitClauses(const Problem& problem, Schedule& s) {
  if (s.strategy == Strategy::Split) return;
  // A step stores half a line of codes at a time: non-temporal, it took 3.5 times as long.
  if (problem.spec->quantize && !isBackward(problem.entry)) s.stream = 0, s.fetch = false;
  if (problem.spec->rope) fitPairs(problem, s);
  if (s.rows == 1 && s.stream <= 1) s.inTurn = false;  // one row has no turn
}

}  // namespace normc::codegen::cpu
