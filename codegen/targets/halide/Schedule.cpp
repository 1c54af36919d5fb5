#include "codegen/targets/halide/Schedule.h"

#include "codegen/targets/Knobs.h"
#include "llvm/Support/MathExtras.h"
#include "runtime/abi/Sums.h"

namespace normc::codegen::halide {

static constexpr int64_t kPage = 4096, kLine = 64;

static llvm::SmallVector<Knob> knobsOf(Schedule& s) {
  return {{"vector", &s.vector},   {"rows", &s.rows},
          {"unroll", &s.unroll},   {"tile", &s.tile},
          {"columns", &s.columns}, {"grain", &s.grain},
          {"stream", &s.stream},   {"scalar_tail", nullptr, &s.scalarTail}};
}

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
          .scalarTail = scalarTail,
          .stream = stream};
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  if (auto error = parseScheduleText(text, schedule.strategy, kStrategies, knobsOf(schedule))) return error;
  return schedule;
}

/// Returns how many rows a step of a stream adds to the sums of its task, in f32; nothing if it adds none. A
/// task has no second level: its steps follow each other.
static std::optional<int64_t> rowsOfSumStep(const Problem& problem, const Schedule& s) {
  const bool sums =
      s.strategy == Strategy::Streamed && problem.entry == Entry::Forward && problem.spec->perFeature();
  if (!sums) return std::nullopt;
  return s.stream ? std::min(s.rows, s.stream) : s.rows;
}

std::optional<std::string> whyIllegal(const Problem& problem, const Schedule& s, const cpu::Isa& isa) {
  if (auto reason = whyIllegalOnSomeTarget(problem, s.strategy)) return reason;
  auto oneOf = [](llvm::StringRef knob, int64_t value, int64_t most) -> std::optional<std::string> {
    if (value >= 1 && value <= most && llvm::isPowerOf2_64(value)) return std::nullopt;
    return knob.str() + " = " + std::to_string(value) + "; legal: a power of two up to " +
           std::to_string(most);
  };
  if (auto reason = oneOf("vector", s.vector, isa.vectorBytes / bytes(problem.statistics()))) return reason;
  if (auto reason = oneOf("rows", s.rows, 8)) return reason;
  if (auto reason = oneOf("unroll", s.unroll, 8)) return reason;
  if (auto reason = oneOf("tile", s.tile, 8)) return reason;
  if (auto reason = oneOf("columns", s.columns, 65536)) return reason;
  if (s.grain < 1) return "grain = " + std::to_string(s.grain) + "; legal: at least 1";
  if (s.rows * s.unroll > 16)
    return "rows * unroll = " + std::to_string(s.rows * s.unroll) +
           " accumulators of each sum; legal: up to 16";
  if (s.stream)
    if (auto reason = oneOf("stream", s.stream, 8)) return *reason + ", or 0";
  if (const auto step = rowsOfSumStep(problem, s); step && s.grain > kLongestChain * *step)
    return "grain = " + std::to_string(s.grain) + " rows, " + std::to_string(*step) +
           " at a time, for the sums of a batch; legal: at most " + std::to_string(kLongestChain) + " steps";
  const bool narrow = bytes(problem.data) == 2 || bytes(problem.params) == 2;
  if (narrow && !s.scalarTail && !isa.masks16)
    return "masked tails of 16-bit elements; " + isa.name.str() + " has no 16-bit masks: scalar_tail";
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
  // The next rows are not asked for here, so one after the other is best in memory where they neither share sums per
  // feature nor are long. One row at a time, sums of a batch's mean are longer than those of MLIR's, and too long.
  const bool mean = problem.spec->perFeature() && problem.entry != Entry::Backward && problem.spec->needsBatchStatistics();
  const bool shares = problem.spec->perFeature() && other.stream == 8;
  const bool alone = other.fetch && !shares && problem.features.value_or(1024) * bytes(problem.data) <= 2 * kPage;
  s.stream = !alone ? other.stream : mean ? 8 : 1;
  s.scalarTail = other.scalarTail;
  const bool lines = !problem.spec->perFeature() && problem.spec->reduce == Reduce::Features;
  const int64_t features = problem.features.value_or(1024);
  // Rows that begin at one place in a page push each other out of the first-level cache; those that begin a line or two
  // beside it wait for what their neighbours stored.
  const int64_t size = features * bytes(problem.data), pitch = size % kPage;
  const bool beside = std::min(pitch, kPage - pitch) < 2 * kLine && lines && problem.features && size > kPage / 2;
  s.rows = lines && features > 4096 ? 1 : beside || cpu::placesOfRows(problem) == 1 ? 2 : 4;
  if (lines && problem.entry != Entry::Backward) s.rows = std::min(s.rows, std::max<int64_t>(other.rows, 2));
  s.unroll = s.rows == 1 ? 4 : s.rows == 2 ? 2 : 1;
  s.tile = isa.registers >= 32 ? 4 : 2;
  // What does not fill a vector is one step; one by one it is done where there are no masks.
  while (s.vector > 4 && features < (s.scalarTail ? 4 * s.vector : s.vector / 2 + 1)) s.vector /= 2;
  // What does not fill a tile is walked again, a vector at a time: worth it where it is one vector of a few.
  const int64_t most = !s.scalarTail && features < 8 * s.vector ? s.vector : 0;
  while (s.tile > 1 && (features < s.vector * s.tile || features % (s.vector * s.tile) > most)) s.tile /= 2;
  if (const auto step = rowsOfSumStep(problem, s)) s.grain = std::min(s.grain, kLongestChain * *step);
  return s;
}

}  // namespace normc::codegen::halide
