#include "codegen/targets/cpu/CpuSchedule.h"

#include <algorithm>
#include <numeric>

#include "codegen/targets/Knobs.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cpu {

static llvm::SmallVector<Knob> knobsOf(Schedule& s) {
  return {{"vector", &s.vector},
          {"rows", &s.rows},
          {"unroll", &s.unroll},
          {"tile", &s.tile},
          {"grain", &s.grain},
          {"stream", &s.stream},
          {"scalar_tail", nullptr, &s.scalarTail},
          {"ahead", nullptr, &s.ahead},
          {"fetch", nullptr, &s.fetch},
          {"nta", nullptr, &s.nta},
          {"in_turn", nullptr, &s.inTurn},
          {"wide", nullptr, &s.wide}};
}

void setKnob(Schedule& s, llvm::StringRef name, int64_t value) { codegen::setKnob(knobsOf(s), name, value); }

std::string Schedule::text() const {
  Schedule copy = *this;
  return scheduleText(strategy, knobsOf(copy));
}

ScheduleAttr Schedule::attribute(mlir::MLIRContext* context) const {
  return ScheduleAttr::get(context, strategy, vector, rows, unroll, tile, grain, scalarTail, stream, ahead,
                           fetch, nta, inTurn, wide);
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  const Strategy known[] = {Strategy::Streamed, Strategy::Resident, Strategy::Split};
  if (auto error = parseScheduleText(text, schedule.strategy, known, knobsOf(schedule))) return error;
  return schedule;
}

bool hasNarrowElements(const Problem& problem) {
  const ElementTypes types = problem.types();
  return bytes(types.data) == 2 || bytes(types.params) == 2 || bytes(types.output) == 2 ||
         bytes(types.stream) == 2 || problem.spec->quantize;
}

std::optional<std::string> whyNoPower(llvm::StringRef knob, int64_t value, int64_t most) {
  if (value >= 1 && value <= most && llvm::isPowerOf2_64(value)) return std::nullopt;
  return knob.str() + " = " + std::to_string(value) + "; legal: a power of two up to " + std::to_string(most);
}

std::optional<std::string> whyIllegalStep(const Problem& problem, const Isa& isa, int64_t rows,
                                          int64_t unroll, int64_t grain, bool scalarTail) {
  if (auto reason = whyNoPower("rows", rows, 8)) return reason;
  if (auto reason = whyNoPower("unroll", unroll, 8)) return reason;
  if (grain < 1 || grain > kMostGrain)
    return "grain = " + std::to_string(grain) + "; legal: 1 to " + std::to_string(kMostGrain);
  if (rows * unroll > 16)
    return "rows * unroll = " + std::to_string(rows * unroll) + " accumulators of each sum; legal: up to 16";
  if (hasNarrowElements(problem) && !scalarTail && !isa.masks16)
    return "masked tails of 16-bit elements; " + isa.name.str() + " has no 16-bit masks: scalar_tail";
  return std::nullopt;
}

std::optional<std::string> whyIllegal(const Problem& problem, const Schedule& s, const Isa& isa) {
  if (auto reason = codegen::whyIllegal(problem, s.strategy)) return reason;
  int64_t lanes = isa.vectorBytes / bytes(problem.statistics());
  // Twice the register is allowed. LLVM splits such vectors, so that tests can run a schedule on a narrower
  // machine.
  if (auto reason = whyNoPower("vector", s.vector, 2 * lanes)) return reason;
  if (auto reason = whyNoPower("tile", s.tile, 16)) return reason;
  if (auto reason = whyIllegalStep(problem, isa, s.rows, s.unroll, s.grain, s.scalarTail)) return reason;
  if (s.stream)
    if (auto reason = whyNoPower("stream", s.stream, 8)) return *reason + ", or 0";
  if (s.fetch && !s.stream) return "fetch with stream = 0; legal: a stream, whose large calls fetch";
  if (s.nta && !s.fetch)
    return "nta without fetch; legal: with fetch, whose prefetches are non-temporal then";
  if (s.ahead && s.strategy == Strategy::Split) return "ahead; legal where a task has whole rows";
  if (s.ahead && statisticWidth(problem) == 0)
    return "ahead; legal where a statistic is of one row, and has to be complete before it is used";
  if (s.ahead && s.rows == 1) return "ahead with rows = 1; legal: rows of at least 2";
  if (s.inTurn && !canStoreInTurn(problem, s.strategy))
    return "in_turn; legal where a task has whole rows, or channels, each with its own statistic";
  if (s.inTurn && s.rows == 1 && problem.layout == Layout::ChannelsFirst)
    return "in_turn with rows = 1; legal: rows of at least 2";
  if (s.inTurn && s.rows == 1 && s.stream <= 1)
    return "in_turn with rows = 1; legal: rows, or stream, of at least 2";
  if (s.wide && !canBeWide(problem, s.strategy))
    return "wide; legal: streamed, with more than 512 features that lie together, without a "
           "pre-normalization";
  return std::nullopt;
}

bool canBeWide(const Problem& problem, Strategy strategy) {
  return strategy == Strategy::Streamed && problem.layout == Layout::FeaturesLast && !problem.spec->pre &&
         problem.features.value_or(kUnknownFeatures) > kCachedTile;
}

bool isMap(const Problem& problem) {
  return problem.entry == Entry::Infer && problem.spec->running.has_value();
}

bool isAcrossChannels(const Problem& problem) {
  return problem.layout == Layout::ChannelsFirst && problem.spec->perRow();
}

bool canStoreInTurn(const Problem& problem, Strategy strategy) {
  if (problem.layout == Layout::ChannelsFirst)
    return problem.spec->perFeature() && strategy == Strategy::Resident;
  return statisticWidth(problem) != 0 && strategy != Strategy::Split;
}

int64_t statisticWidth(const Problem& problem) {
  const Spec& spec = *problem.spec;
  if (problem.layout != Layout::FeaturesLast) return 0;
  const int64_t features = problem.features.value_or(kUnknownFeatures);
  if (spec.pre) return features / problem.groups(spec.pre->groups);
  return spec.perRow() ? features / problem.groups(spec.groups) : 0;
}

int64_t rowsOf(int64_t size, const Problem& problem, int64_t most) {
  return std::clamp<int64_t>(size / (problem.features.value_or(kUnknownFeatures) * bytes(problem.data)), 1,
                             most);
}

/// Returns the distance in bytes, forwards or backwards, between the offsets within a page of a row and of
/// the n-th row after it.
static int64_t pageOffsetDistance(const Problem& problem, int64_t n) {
  const int64_t pitch = n * *problem.features * bytes(problem.data) % kPage;
  return std::min(pitch, kPage - pitch);
}

/// The same, but rows that are less than half a page apart follow each other in it: half a page.
static int64_t pageDistanceOfRows(const Problem& problem, int64_t n) {
  return n * *problem.features * bytes(problem.data) < kPage / 2 ? kPage / 2 : pageOffsetDistance(problem, n);
}

int64_t pageOffsetsOfRows(const Problem& problem) {
  if (!problem.features || problem.layout != Layout::FeaturesLast) return kPage / kCacheLine;
  if (pageDistanceOfRows(problem, 1) < kCacheLine) return 1;
  if (pageDistanceOfRows(problem, 2) < kCacheLine) return 2;
  return kPage / std::gcd(kPage, *problem.features * bytes(problem.data));
}

bool usesColumnTiles(const Problem& problem, Strategy strategy) {
  if (problem.layout != Layout::FeaturesLast) return false;
  return problem.spec->perFeature() ? strategy == Strategy::Resident
                                    : problem.spec->reduce == Reduce::Segment;
}

llvm::SmallVector<Strategy, 2> strategies(const Problem& problem) {
  llvm::SmallVector<Strategy, 2> legal = legalStrategies(problem);
  for (Strategy s : {Strategy::Streamed, Strategy::Resident, Strategy::Split})
    if (!llvm::is_contained(legal, s) && !codegen::whyIllegal(problem, s)) legal.push_back(s);
  return legal;
}

}  // namespace normc::codegen::cpu
