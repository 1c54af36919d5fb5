#include "codegen/targets/cpu/CpuSchedule.h"

#include <numeric>

#include "codegen/targets/Knobs.h"
#include "codegen/targets/cpu/IntelCove.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cpu {

/// Of x in the least task that is worth a thread, where sums per feature come out of it; and rows for which it may be half
/// of that where x is read once.
static constexpr int64_t kTaskBytes = 256 << 10, kTaskRows = 16;
/// The same where rows of a feature lie in a run: tasks begin anew in each, so few and long pieces.
static constexpr int64_t kRunsTaskBytes = 1 << 20, kRunsTaskRows = 1024;
/// Of x, for a task that has a piece of every row: a backward does four times as much with it.
static constexpr int64_t kSplitBytes = 64 << 10, kSplitBytesBackward = 32 << 10;
/// Longer lines hide the wait for their statistic by themselves.
static constexpr int64_t kShortWidth = 128;
/// Two rows, of several vectors in a step, keep a core busy.
static constexpr int64_t kMiddleWidth = 768;
/// Longer ones are worth a core each.
static constexpr int64_t kLongWidth = 16384;
/// Where statistics are sums of squares alone: half registers up to here, and from there one row at a time up to the next.
static constexpr int64_t kSquaresWidth = 1024, kLongSquaresWidth = 4096;

/// Bytes of a row that, in memory, is best read and written alone; less than half as many leave room for eight.
static constexpr int64_t kShortRowBytes = 4 << 10;

static llvm::SmallVector<Knob> knobsOf(Schedule& s) {
  return {{"vector", &s.vector}, {"rows", &s.rows},   {"unroll", &s.unroll},
          {"tile", &s.tile},     {"grain", &s.grain}, {"stream", &s.stream},
          {"scalar_tail", nullptr, &s.scalarTail}, {"ahead", nullptr, &s.ahead}, {"fetch", nullptr, &s.fetch},
          {"in_turn", nullptr, &s.inTurn}};
}

std::string Schedule::text() const {
  Schedule copy = *this;
  return scheduleText(strategy, knobsOf(copy));
}

ScheduleAttr Schedule::attribute(mlir::MLIRContext* context) const {
  return ScheduleAttr::get(context, name(strategy), vector, rows, unroll, tile, grain, scalarTail, stream, ahead, fetch, inTurn);
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  const Strategy known[] = {Strategy::Streamed, Strategy::Resident, Strategy::Split};
  if (auto error = parseScheduleText(text, schedule.strategy, known, knobsOf(schedule))) return error;
  return schedule;
}

static bool narrow(const Problem& problem) { return bytes(problem.data) == 2 || bytes(problem.params) == 2; }

std::optional<std::string> whyIllegal(const Problem& problem, const Schedule& s, const Isa& isa) {
  if (auto reason = codegen::whyIllegal(problem, s.strategy)) return reason;
  auto oneOf = [](llvm::StringRef knob, int64_t value, int64_t most) -> std::optional<std::string> {
    if (value >= 1 && value <= most && llvm::isPowerOf2_64(value)) return std::nullopt;
    return knob.str() + " = " + std::to_string(value) + "; legal: a power of two up to " + std::to_string(most);
  };
  int64_t lanes = isa.vectorBytes / bytes(problem.statistics());
  // Twice the register is allowed: LLVM splits it, which tests a wider schedule on a narrower machine.
  if (auto reason = oneOf("vector", s.vector, 2 * lanes)) return reason;
  if (auto reason = oneOf("rows", s.rows, 8)) return reason;
  if (auto reason = oneOf("unroll", s.unroll, 8)) return reason;
  if (auto reason = oneOf("tile", s.tile, 16)) return reason;
  if (s.grain < 1) return "grain = " + std::to_string(s.grain) + "; legal: at least 1";
  if (s.rows * s.unroll > 16)
    return "rows * unroll = " + std::to_string(s.rows * s.unroll) + " accumulators of each sum; legal: up to 16";
  if (s.stream)
    if (auto reason = oneOf("stream", s.stream, 8)) return *reason + ", or 0";
  if (s.ahead && s.strategy == Strategy::Split) return "ahead; legal where a task has whole rows";
  if (s.ahead && statisticWidth(problem) == 0) return "ahead; legal where a statistic is of one row, and has to be complete before it is used";
  if (s.ahead && s.rows == 1) return "ahead with rows = 1; legal: rows of at least 2";
  if (s.inTurn && !canStoreInTurn(problem, s.strategy)) return "in_turn; legal where a task has whole rows, or channels, each with its own statistic";
  if (s.inTurn && s.rows == 1 && problem.layout == Layout::ChannelsFirst) return "in_turn with rows = 1; legal: rows of at least 2";
  if (s.inTurn && s.rows == 1 && s.stream <= 1) return "in_turn with rows = 1; legal: rows, or stream, of at least 2";
  if (narrow(problem) && !s.scalarTail && !isa.masks16)
    return "masked tails of 16-bit elements; " + isa.name.str() + " has no 16-bit masks: scalar_tail";
  return std::nullopt;
}

bool canStoreInTurn(const Problem& problem, Strategy strategy) {
  if (problem.layout == Layout::ChannelsFirst) return problem.spec->perFeature() && strategy == Strategy::Resident;
  return statisticWidth(problem) != 0 && strategy != Strategy::Split;
}

int64_t statisticWidth(const Problem& problem) {
  const Spec& spec = *problem.spec;
  if (problem.layout != Layout::FeaturesLast) return 0;
  const int64_t features = problem.features.value_or(kUnknownFeatures);
  if (spec.pre) return features / problem.groups(spec.pre->groups);
  return spec.reduce == Reduce::Features ? features / problem.groups(spec.groups) : 0;
}

/// From where a row begins within a page to where the n-th after it does, in bytes, forwards or backwards.
static int64_t pageOffsetDistance(const Problem& problem, int64_t n) {
  const int64_t pitch = n * *problem.features * bytes(problem.data) % kPage;
  return std::min(pitch, kPage - pitch);
}

/// The same, but rows that lie within half a page together follow each other in it.
static int64_t pageDistanceOfRows(const Problem& problem, int64_t n) {
  return n * *problem.features * bytes(problem.data) < kPage / 2 ? kPage / 2 : pageOffsetDistance(problem, n);
}

int64_t rowsWithoutPageConflict(const Problem& problem) {
  if (!problem.features || problem.layout != Layout::FeaturesLast) return 8;
  for (int64_t n = 1; n < 8; ++n) {
    const int64_t drift = pageDistanceOfRows(problem, n);
    if (drift > 0 && drift < 2 * kCacheLine) return n < 2 ? 1 : n < 4 ? 2 : 4;
  }
  return 8;
}

bool splitsCacheLines(const Problem& problem) {
  if (!problem.features || problem.layout != Layout::FeaturesLast) return false;
  const int64_t size = *problem.features * bytes(problem.data);
  return size % kCacheLine != 0 && size < kPage && rowsWithoutPageConflict(problem) > 1;
}

int64_t pageOffsetsOfRows(const Problem& problem) {
  if (!problem.features || problem.layout != Layout::FeaturesLast) return kPage / kCacheLine;
  if (pageDistanceOfRows(problem, 1) < kCacheLine) return 1;
  if (pageDistanceOfRows(problem, 2) < kCacheLine) return 2;
  return kPage / std::gcd(kPage, *problem.features * bytes(problem.data));
}

/// Whether the rest of a row is done in halves of halves of a vector: where it is one such, and where a store under a mask
/// takes as long as a dozen others.
static bool endsInHalves(const Problem& problem, const Isa& isa, const Schedule& s) {
  if (problem.data != DType::F32 || problem.params != DType::F32 || !problem.features || problem.layout != Layout::FeaturesLast) return false;
  if (usesColumnTiles(problem, s.strategy) || s.strategy == Strategy::Split || problem.spec->pre) return false;
  const int64_t run = problem.spec->perFeature() ? *problem.features : statisticWidth(problem), rest = run % s.vector;
  return rest && run > s.vector && (isa.registers < 32 || rest <= 2);
}

/// Rows whose x has `size` bytes, from 1 to `most`.
static int64_t rowsOf(int64_t size, const Problem& problem, int64_t most) {
  return std::clamp<int64_t>(size / (problem.features.value_or(kUnknownFeatures) * bytes(problem.data)), 1, most);
}

/// Lanes that a short line fills: of half a register rather than one and a half.
static int64_t lanesForWidth(int64_t width, int64_t lanes) {
  while (lanes > 2 && (width < lanes || (width < 4 * lanes && width % lanes != 0 && width % (lanes / 2) == 0))) lanes /= 2;
  return lanes;
}

/// Statistics are sums of squares alone: little arithmetic for what is loaded.
static bool squaresOnly(const Problem& problem) { return problem.spec->center == Center::None && problem.spec->reduce == Reduce::Features; }

/// Whether a row of f32 is so short that a step may hold all or half of it, and rows begin within lines: many rows
/// together then leave many lines half written.
static bool isShortUnalignedRow(const Problem& problem, const Isa& isa) {
  if (isa.vectorBytes < kCacheLine || problem.data != DType::F32 || problem.spec->pre || !splitsCacheLines(problem)) return false;
  int64_t most = kShortWidth;
  if (!problem.spec->perFeature()) most = 7 * kShortWidth / 4;
  else if (problem.entry == Entry::Forward || problem.spec->needsBatchStatistics()) most = 5 * kShortWidth / 4;
  return *problem.features > kShortWidth / 2 && *problem.features < most;
}

/// Outputs that share nothing but sums per feature, or a square.
static bool sharesOnlySums(const Problem& problem) {
  if (problem.spec->perFeature()) return problem.entry != Entry::Infer;
  return squaresOnly(problem) && problem.entry != Entry::Backward;
}

/// Where half of 512 bits is faster: short lines whose sums it shortens; and what does little but load and store, where
/// the whole would lie in two cache lines each time. On a Zen 4, whose units have 256 bits, by 5 to 8 %; elsewhere it was
/// measured to cost up to a third.
static bool usesHalfRegister(const Problem& problem, const Isa& isa) {
  if (isa.core != Core::Zen || isa.vectorBytes < kCacheLine || problem.data != DType::F32 || problem.entry == Entry::Backward) return false;
  if (!problem.features || problem.layout != Layout::FeaturesLast || problem.spec->pre) return false;
  const int64_t width = statisticWidth(problem), odd = *problem.features * bytes(problem.data) % kCacheLine;
  if (problem.spec->perFeature()) return problem.entry == Entry::Infer && odd != 0;
  if (width < kShortWidth / 2) return false;
  if (squaresOnly(problem)) return (width <= kSquaresWidth || odd == kCacheLine / 2) && !isShortUnalignedRow(problem, isa);
  return width < (odd ? kShortWidth : 3 * kShortWidth / 4);
}

/// A vector of bf16 fills a register of AVX-512 and two as f32: one shuffle takes it apart, one instruction puts it together.
static bool usesRegisterPairs(const Problem& problem, const Isa& isa) {
  return isa.masks16 && problem.data == DType::BF16 && problem.layout == Layout::FeaturesLast;
}

/// Rows share parameter loads and one update of the column partials; one row with several accumulators suits long rows.
static int64_t rowsTogether(const Problem& problem, const Isa& isa, bool ahead) {
  const bool wide = isa.registers >= 32, perFeature = problem.spec->perFeature();
  const bool backward = problem.entry == Entry::Backward;
  // Runs of any length, perhaps a page: as many as share the cost of a statistic and still fit the first-level cache.
  if (problem.layout == Layout::ChannelsFirst) return backward ? 2 : 4;
  const int64_t width = statisticWidth(problem), offsets = pageOffsetsOfRows(problem);
  if (isShortUnalignedRow(problem, isa) && sharesOnlySums(problem)) return 2;
  if (!perFeature && width) {
    if (width > kLongWidth) return 1;
    const bool narrow = problem.data != DType::F32;
    if (wide && !narrow && !backward && squaresOnly(problem) && width > kSquaresWidth && width <= kLongSquaresWidth) return 1;
    // Sixteen registers do not hold the values of two rows that are centred.
    if (!wide && backward && !squaresOnly(problem) && width > kShortWidth && width <= 2 * kMiddleWidth) return 1;
    if (width > kMiddleWidth && !backward && usesRegisterPairs(problem, isa)) return 4;
    if (width > kMiddleWidth || (ahead && backward)) return 2;
  }
  // A backward of scaled groups has five values of each row, of two registers each.
  if (perFeature && ahead && backward && usesRegisterPairs(problem, isa)) return 2;
  // Rows that begin at one place in a page push each other out of the first-level cache: two of them, and their
  // outputs, still fit. Where they begin a line apart, each waits for what its neighbour just stored.
  if (offsets == 1 || (problem.features && pageDistanceOfRows(problem, 1) <= kCacheLine)) return 2;
  if (perFeature && offsets == 2) return wide && backward && splitsCacheLines(problem) ? 2 : 4;
  // Without sums there is nothing to share.
  if (perFeature && problem.entry == Entry::Infer && !problem.spec->pre) return 1;
  // The same goes for any two of those that are under way.
  const int64_t conflictFree = perFeature && offsets > 2 ? std::max<int64_t>(rowsWithoutPageConflict(problem), 2) : 8;
  if (!wide || !problem.features) return std::min<int64_t>(conflictFree, 4);
  // Many short lines share what one statistic costs; a backward has no registers for eight.
  if (width && ahead && !backward && width < kShortWidth && squaresOnly(problem) && !usesRegisterPairs(problem, isa)) return 4;
  if (width) return std::min<int64_t>(conflictFree, !backward && width <= 3 * kShortWidth ? 8 : 4);
  return conflictFree;
}

bool usesColumnTiles(const Problem& problem, Strategy strategy) {
  if (problem.layout != Layout::FeaturesLast) return false;
  return problem.spec->perFeature() ? strategy == Strategy::Resident : problem.spec->reduce == Reduce::Segment;
}

llvm::SmallVector<Strategy, 2> strategies(const Problem& problem) {
  llvm::SmallVector<Strategy, 2> legal = legalStrategies(problem);
  for (Strategy s : {Strategy::Streamed, Strategy::Split})
    if (!llvm::is_contained(legal, s) && !codegen::whyIllegal(problem, s)) legal.push_back(s);
  return legal;
}

/// Of what goes along rows and then down columns, beside the lanes and tails that any strategy would have: few rows leave
/// registers for wide tiles.
static Schedule splitSchedule(const Problem& problem, const Isa& isa, Schedule s) {
  const int64_t halves = usesRegisterPairs(problem, isa) ? 2 : 1;
  const bool backward = problem.entry == Entry::Backward;
  s.rows = 1, s.unroll = 4 / halves, s.tile = (isa.registers >= 32 ? 8 : backward ? 2 : 4) / halves;
  s.grain = (backward ? kSplitBytesBackward : kSplitBytes) / bytes(problem.data);
  s.stream = 0, s.ahead = false, s.fetch = false;
  return s;
}

/// Vectors of a row in a step: as many sums in all as hide the latency of an addition, in the registers there are.
static int64_t unrollOf(const Problem& problem, const Isa& isa, const Schedule& s) {
  const int64_t width = statisticWidth(problem), offsets = pageOffsetsOfRows(problem);
  const bool wide = isa.registers >= 32, backward = problem.entry == Entry::Backward;
  if (usesHalfRegister(problem, isa) && width > 3 * kShortWidth) return std::min<int64_t>(8 / s.rows, 4);
  if (problem.layout == Layout::ChannelsFirst) return 1;
  if (s.rows == 2 && isShortUnalignedRow(problem, isa) && sharesOnlySums(problem)) return *problem.features < kShortWidth ? 4 : 8;
  if (s.rows != 2) return s.rows == 1 ? 4 : 1;
  // Sixteen registers hold the values of one vector in two rows of a backward.
  if (s.ahead || (!wide && width && backward)) return 1;
  const bool many = problem.spec->perFeature() ? (offsets == 1 || (offsets == 2 && splitsCacheLines(problem))) && backward : width > kMiddleWidth && offsets > 1;
  return wide && many ? 4 : 2;
}

/// Vectors of a row in a strip of columns: 256 bytes, unless sixteen registers would not hold the sums of a backward.
static int64_t tileOf(const Problem& problem, const Isa& isa) {
  // Where rows begin at few places in a page, a wide strip visits each less often.
  if (pageOffsetsOfRows(problem) <= 2) return 8;
  // Where strips would end within lines, few of them do.
  const bool manyFeatures = problem.features && *problem.features > kShortWidth / 2 && problem.data == DType::F32;
  if (isa.registers >= 32 && manyFeatures && problem.entry == Entry::Forward && splitsCacheLines(problem)) return 8;
  // Where the next row begins just beside it, a narrow one is done with the place before a store comes to it.
  if (rowsWithoutPageConflict(problem) == 1) return 2;
  return isa.registers >= 32 || problem.entry == Entry::Backward ? 4 : 8;
}

/// In memory rows share parameters and sums, and the next ones are asked for, or many streams of them lose to one. A short
/// line alone is written before memory rests, but for the time of its conversions.
static int64_t rowsOfLargeCall(const Problem& problem, Strategy strategy) {
  // More runs than a task has would go alone.
  if (problem.layout == Layout::ChannelsFirst) return strategy == Strategy::Streamed ? 1 : 4;
  const bool wide = bytes(problem.data) > 2, backward = problem.entry == Entry::Backward;
  if (problem.spec->perFeature()) {
    // One sweep reads all and writes all; where a batch's statistics come first, the second reads what the first left.
    // Groups one by one leave registers, and ask for the next row.
    if (problem.data == DType::BF16 && backward && !problem.spec->needsBatchStatistics()) return problem.spec->pre ? 1 : 2;
    return !problem.spec->pre && (wide || backward) ? 8 : 4;
  }
  if (problem.spec->reduce != Reduce::Features) return 1;
  if (backward) return 4;
  const int64_t width = statisticWidth(problem), size = width * bytes(problem.data);
  if (!wide) return squaresOnly(problem) && 2 * size < kShortRowBytes ? 8 : 4;
  if (size <= kShortRowBytes) return 1;
  return problem.data == DType::F32 && width <= kLongWidth / 2 ? 8 : 4;
}

Schedule defaultSchedule(const Problem& problem, const Isa& isa, Strategy strategy) {
  Schedule s;
  s.strategy = strategy;
  s.vector = isa.vectorBytes / bytes(problem.statistics());
  const int64_t width = statisticWidth(problem);
  // bf16 is rounded in lanes of 16 bits, a register of them at a time; f16 by an instruction.
  const bool fills = isa.masks16 || (problem.features && *problem.features % (2 * s.vector) == 0);
  if (problem.data == DType::BF16 && problem.layout == Layout::FeaturesLast && fills) s.vector *= 2;
  if (width) s.vector = lanesForWidth(width, s.vector);
  if (usesHalfRegister(problem, isa)) s.vector = isa.vectorBytes / 2 / bytes(problem.statistics());
  const bool perFeature = problem.spec->perFeature();
  const bool perRow = !perFeature && problem.spec->reduce == Reduce::Features;
  const bool waitsForStatistic = width <= kShortWidth || (sharesOnlySums(problem) && isShortUnalignedRow(problem, isa));
  s.ahead = problem.features && width > 0 && waitsForStatistic;
  s.rows = rowsTogether(problem, isa, s.ahead);
  s.unroll = unrollOf(problem, isa, s);
  s.tile = tileOf(problem, isa);
  if (usesRegisterPairs(problem, isa)) s.unroll = std::max<int64_t>(s.unroll / 2, 1), s.tile = std::max<int64_t>(s.tile / 2, 1);
  // A task is worth waking a thread for, and what it leaves to be added up is little beside it.
  const bool partials = perFeature || problem.entry == Entry::Backward;
  if (problem.layout == Layout::FeaturesLast && (perFeature || perRow)) {
    s.grain = rowsOf(partials ? kTaskBytes : kTaskBytes / 4, problem, 512);
    if (partials && perRow) s.grain = std::min(s.grain, std::max(rowsOf(kTaskBytes / 2, problem, 512), kTaskRows));
  }
  if (problem.layout == Layout::ChannelsFirst && strategy == Strategy::Streamed) s.grain = std::max(rowsOf(kRunsTaskBytes, problem, 4096), kRunsTaskRows);
  s.scalarTail = (narrow(problem) && !isa.masks16) || endsInHalves(problem, isa, s);
  s.fetch = problem.layout == Layout::FeaturesLast && (perFeature || perRow);
  s.stream = rowsOfLargeCall(problem, strategy);
  if (usesColumnTiles(problem, strategy)) {
    // Terms of two rows are added first in wide tiles of a backward, which then write their sums half as often.
    s.rows = isa.registers >= 32 && tileOf(problem, isa) > 4 && problem.entry == Entry::Backward ? 2 : 1;
    s.unroll = 1, s.stream = 0, s.fetch = false;
  }
  if (strategy == Strategy::Split) return splitSchedule(problem, isa, s);
  if (isa.core == Core::Cove) tuneForIntelCove(problem, isa, s);
  return s;
}

}  // namespace normc::codegen::cpu
