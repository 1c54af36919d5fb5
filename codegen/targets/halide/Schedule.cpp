#include "codegen/targets/halide/Schedule.h"

#include "codegen/targets/Knobs.h"
#include "llvm/Support/MathExtras.h"
#include "runtime/abi/MemoryUnits.h"
#include "runtime/abi/Sums.h"

namespace normc::codegen::halide {

static llvm::SmallVector<Knob> knobsOf(Schedule& s) {
  return {{"vector", &s.vector},
          {"rows", &s.rows},
          {"unroll", &s.unroll},
          {"tile", &s.tile},
          {"columns", &s.columns},
          {"grain", &s.grain},
          {"scalar_tail", nullptr, &s.scalarTail}};
}

void setKnob(Schedule& s, llvm::StringRef name, int64_t value) { codegen::setKnob(knobsOf(s), name, value); }

std::string Schedule::text() const {
  Schedule copy = *this;
  return scheduleText(strategy, knobsOf(copy));
}

cpu::Schedule Schedule::cut() const {
  return {.strategy = strategy,
          .vector = vector,
          .rows = rows,
          .unroll = unroll,
          .tile = tile,
          .grain = grain,
          .scalarTail = scalarTail};
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  // Up to version 0.1 this knob gave loops of their own to calls that exceed the caches. Such a text means
  // other code than this generator makes.
  if (text.contains(",stream="))
    return llvm::createStringError("schedule '" + text.str() +
                                   "' has the knob 'stream', which the Halide generator no " +
                                   "longer has: leave it out, or tune again");
  Schedule schedule;
  if (auto error = parseScheduleText(text, schedule.strategy, kStrategies, knobsOf(schedule))) return error;
  return schedule;
}

/// Returns how many rows a step of a stream adds to the sums of its task, in f32; nothing if it adds none. A
/// task has no second level: its steps follow each other.
static std::optional<int64_t> rowsOfSumStep(const Problem& problem, const Schedule& s) {
  const bool sums = s.strategy == Strategy::Streamed && !isBackward(problem.entry) && !cpu::isMap(problem) &&
                    problem.spec->perFeature();
  if (!sums) return std::nullopt;
  return s.rows;
}

std::optional<std::string> whyIllegal(const Problem& problem) {
  if (auto reason = whyInMlirAlone(problem)) return reason;
  if (!isOverRanks(problem.entry)) return whyOnCpuAlone(problem);
  return "the Halide generator has no partials, which are f64 beside other types: MLIR compiles entries over "
         "ranks";
}

std::optional<std::string> whyIllegal(const Problem& problem, const Schedule& s, const cpu::Isa& isa) {
  if (auto reason = whyIllegal(problem)) return reason;
  if (auto reason = whyIllegalOnSomeTarget(problem, s.strategy)) return reason;
  const int64_t lanes = isa.vectorBytes / bytes(problem.statistics());
  if (auto reason = cpu::whyNoPower("vector", s.vector, lanes)) return reason;
  if (auto reason = cpu::whyNoPower("tile", s.tile, 8)) return reason;
  if (auto reason = cpu::whyNoPower("columns", s.columns, 65536)) return reason;
  if (auto reason = cpu::whyIllegalStep(problem, isa, s.rows, s.unroll, s.grain, s.scalarTail)) return reason;
  if (const auto step = rowsOfSumStep(problem, s); step && s.grain > kLongestChain * *step)
    return "grain = " + std::to_string(s.grain) + " rows, " + std::to_string(*step) +
           " at a time, for the sums of a batch; legal: at most " + std::to_string(kLongestChain) + " steps";
  if (s.columns < s.vector * s.unroll)
    return "columns = " + std::to_string(s.columns) +
           "; legal: at least vector * unroll = " + std::to_string(s.vector * s.unroll);
  return std::nullopt;
}

Schedule defaultSchedule(const Problem& problem, const cpu::Isa& isa, Strategy strategy) {
  Schedule s;
  s.strategy = strategy;
  s.vector = isa.vectorBytes / bytes(problem.statistics());
  const cpu::Schedule other = cpu::defaultSchedule(problem, isa, strategy);
  s.scalarTail = other.scalarTail;
  const bool lines = problem.spec->perRow();
  const int64_t features = problem.features.value_or(cpu::kUnknownFeatures);
  // Rows that begin at the same offset in a page evict each other from the first-level cache. With offsets
  // one or two cache lines apart loads wait for the stores of neighbouring rows.
  const int64_t size = features * bytes(problem.data), pitch = size % kPage;
  const bool beside =
      std::min(pitch, kPage - pitch) < 2 * kCacheLine && lines && problem.features && size > kPage / 2;
  s.rows = lines && features > 4096 ? 1 : beside || cpu::pageOffsetsOfRows(problem) == 1 ? 2 : 4;
  if (lines && !isBackward(problem.entry)) s.rows = std::min(s.rows, std::max<int64_t>(other.rows, 2));
  s.unroll = s.rows == 1 ? 4 : s.rows == 2 ? 2 : 1;
  s.tile = isa.registers >= 32 ? 4 : 2;
  // A rest that does not fill a vector is one masked step, or single elements without masks.
  while (s.vector > 4 && features < (s.scalarTail ? 4 * s.vector : s.vector / 2 + 1)) s.vector /= 2;
  // A rest that does not fill a tile is walked a vector at a time, which pays if it is one vector of a few.
  const int64_t most = !s.scalarTail && features < 8 * s.vector ? s.vector : 0;
  while (s.tile > 1 && (features < s.vector * s.tile || features % (s.vector * s.tile) > most)) s.tile /= 2;
  if (const auto step = rowsOfSumStep(problem, s)) s.grain = std::min(s.grain, kLongestChain * *step);
  return s;
}

}  // namespace normc::codegen::halide
