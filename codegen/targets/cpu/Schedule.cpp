#include "codegen/targets/cpu/Schedule.h"

#include <numeric>

#include "codegen/lower/PhaseLowering.h"
#include "codegen/targets/Knobs.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cpu {

/// Addresses that far apart share a set of the first-level cache.
static constexpr int64_t kPage = 4096;
/// Of x in the least task that is worth a thread, where sums per feature come out of it.
static constexpr int64_t kTaskBytes = 256 << 10;
/// Features of a kernel for any number of them, as far as choices go.
static constexpr int64_t kUnknownFeatures = 1024;
/// Longer lines hide the wait for their statistic by themselves.
static constexpr int64_t kShortLine = 128;

static llvm::SmallVector<Knob> knobsOf(Schedule& s) {
  return {{"vector", &s.vector}, {"rows", &s.rows},   {"unroll", &s.unroll},
          {"tile", &s.tile},     {"grain", &s.grain}, {"stream", &s.stream},
          {"scalar_tail", nullptr, &s.scalarTail}, {"ahead", nullptr, &s.ahead}};
}

std::string Schedule::text() const {
  Schedule copy = *this;
  return scheduleText(strategy, knobsOf(copy));
}

ScheduleAttr Schedule::attribute(mlir::MLIRContext* context) const {
  return ScheduleAttr::get(context, name(strategy), vector, rows, unroll, tile, grain, scalarTail, stream, ahead);
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  if (auto error = parseScheduleText(text, schedule.strategy, knobsOf(schedule))) return error;
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
  if (auto reason = oneOf("tile", s.tile, 8)) return reason;
  if (s.grain < 1) return "grain = " + std::to_string(s.grain) + "; legal: at least 1";
  if (s.rows * s.unroll > 16)
    return "rows * unroll = " + std::to_string(s.rows * s.unroll) + " accumulators of each sum; legal: up to 16";
  if (s.stream)
    if (auto reason = oneOf("stream", s.stream, 8)) return *reason + ", or 0";
  if (s.ahead && lineOf(problem) == 0) return "ahead; legal where a statistic is of one row, and has to be complete before it is used";
  if (s.ahead && s.rows == 1) return "ahead with rows = 1; legal: rows of at least 2";
  if (narrow(problem) && !s.scalarTail && !isa.masks16)
    return "masked tails of 16-bit elements; " + isa.name.str() + " has no 16-bit masks: scalar_tail";
  return std::nullopt;
}

int64_t lineOf(const Problem& problem) {
  const Spec& spec = *problem.spec;
  if (problem.layout != Layout::FeaturesLast) return 0;
  const int64_t features = problem.features.value_or(kUnknownFeatures);
  if (spec.pre) return features / problem.groups(spec.pre->groups);
  return spec.reduce == Reduce::Features ? features / problem.groups(spec.groups) : 0;
}

int64_t placesOfRows(const Problem& problem) {
  if (!problem.features || problem.layout != Layout::FeaturesLast) return kPage / kLine;
  return kPage / std::gcd(kPage, *problem.features * bytes(problem.data));
}

/// Rows whose x has `size` bytes, from 1 to `most`.
static int64_t rowsOf(int64_t size, const Problem& problem, int64_t most) {
  return std::clamp<int64_t>(size / (problem.features.value_or(kUnknownFeatures) * bytes(problem.data)), 1, most);
}

Schedule defaultSchedule(const Problem& problem, const Isa& isa, Strategy strategy) {
  Schedule s;
  s.strategy = strategy;
  s.vector = isa.vectorBytes / bytes(problem.statistics());
  const bool wide = isa.registers >= 32, perFeature = problem.spec->perFeature();
  const int64_t places = placesOfRows(problem);
  // Rows share parameter loads and one update of the column partials; one row with
  // several accumulators suits long rows. Rows that begin at one place in a page push each
  // other out of the first-level cache: two of them, and their outputs, still fit.
  const bool lines = !perFeature && problem.spec->reduce == Reduce::Features;
  s.rows = lines && problem.features.value_or(kUnknownFeatures) > 4096 ? 1
           : places == 1                                   ? 2
           : perFeature && places == 2                     ? 4
           : problem.features && !lines && wide            ? 8
                                                           : 4;
  s.unroll = s.rows == 1 ? 4 : s.rows == 2 ? 2 : 1;
  // Wider tiles of a column slab outgrow the instruction cache; but they visit a place in a page less often.
  s.tile = places <= 2 ? 8 : wide ? 4 : 2;
  // A task is worth waking a thread for, and what it leaves to be added up is little beside it.
  const bool partials = perFeature || problem.entry == Entry::Backward;
  if (problem.layout == Layout::FeaturesLast && (perFeature || lines))
    s.grain = rowsOf(partials ? kTaskBytes : kTaskBytes / 4, problem, 512);
  s.scalarTail = narrow(problem) && !isa.masks16;
  const int64_t line = lineOf(problem);
  s.ahead = s.rows > 1 && line > 0 && line <= kShortLine;
  // In memory many short streams of rows lose to one long one, unless rows share sums per feature.
  s.stream = !perFeature || problem.spec->pre ? 1 : 8;
  if (perFeature && strategy == Strategy::Resident) s.stream = 0;
  return s;
}

}  // namespace normc::codegen::cpu
