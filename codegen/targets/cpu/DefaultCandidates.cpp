#include "codegen/targets/cpu/DefaultCandidates.h"

#include <algorithm>

#include "codegen/targets/cpu/DefaultClauses.h"
#include "codegen/targets/cpu/DefaultRule.h"
#include "codegen/targets/cpu/DefaultTable.h"

namespace normc::codegen::cpu {

/// The bytes of x up to which whole columns are faster than streams if a statistic is of a feature: they read
/// memory in narrow strips, so all has to stay in cache. Sixteen registers hold few sums of a backward.
static constexpr int64_t kResidentBytes = 512 << 10, kResidentBytesOfFewSums = 256 << 10;
/// The rows up to which they are if rows begin at one offset in a page, where a column uses one set of the
/// first-level cache; and if nothing is summed: all they save is a phase.
static constexpr int64_t kCollidingRows = 8, kMapRows = 4;
/// The same bytes for channels. Beyond them the runs of a channel are too far apart, and x is read twice in
/// the order of memory.
static constexpr int64_t kResidentRunsBytes = 8 << 20, kResidentRunsBytesBackward = 2 << 20,
                         kResidentRunsBytesMap = 64 << 10;
/// Exceptions, if x would be read twice. With a run of this many bytes in each segment (narrow: of 16-bit
/// types) the cost of going to the next run is small. Backward, half a page is enough if the channel stays in
/// the second-level cache.
static constexpr int64_t kLongRunBytes = 8 << 10, kLongRunBytesNarrow = 32 << 10, kRunBytesBackward = 2 << 10,
                         kChannelBytesBackward = 128 << 10;
/// The rows up to which the sums of such a column, which have three levels, keep their precision.
static constexpr int64_t kResidentRows = 1 << 14;
/// The features and rows of a backward for which `split` pays for any number of threads: there are no sums
/// per feature to clear, to update and to fold. With twice as many features it pays for more rows.
static constexpr int64_t kSplitFeatures = 1024, kSplitRows = 4, kSplitRowsOfMany = 16;
/// The same without sums per feature, as in a forward. The only gain is that several threads share a row.
static constexpr int64_t kLongRow = 32768;

/// Returns the number of rows up to which tasks share each row; nothing if that does not pay.
static std::optional<int64_t> splitRows(const Problem& problem, const Isa& isa) {
  const bool sums = isBackward(problem.entry) && (problem.spec->scale || problem.spec->bias);
  const int64_t features = problem.features.value_or(0), least = !sums                ? kLongRow
                                                                 : isa.registers < 32 ? 2 * kSplitFeatures
                                                                                      : kSplitFeatures;
  if (features < least) return std::nullopt;
  if (!sums) return kSplitRows;
  const int64_t rows = features < 2 * least ? kSplitRows : kSplitRowsOfMany;
  return rows;
}

/// Returns the candidates for layout channels_first. The first reads x in the order of memory and serves any
/// call.
static std::vector<DefaultCandidate> channelCandidates(const Problem& problem, const Schedule& whole,
                                                       const Schedule& ordered) {
  const bool backward = isBackward(problem.entry), map = isMap(problem);
  const int64_t size = bytes(problem.data), most = map        ? kResidentRunsBytesMap
                                                   : backward ? kResidentRunsBytesBackward
                                                              : kResidentRunsBytes;
  std::vector<DefaultCandidate> list{{ordered}, {whole, {.rowsMax = rowsOf(most, problem, most)}}};
  if (map || !problem.needsBatchStatistics()) return list;
  if (backward && size > 2)
    list.push_back({whole, {.rowsMax = kChannelBytesBackward / size, .runMin = kRunBytesBackward / size}});
  list.push_back({whole, {.runMin = (size > 2 ? kLongRunBytes : kLongRunBytesNarrow) / size}});
  return list;
}

/// Returns the number of rows up to which whole columns pay.
static int64_t residentRows(const Problem& problem, const Isa& isa) {
  const bool fewSums = isa.registers < 32 && isBackward(problem.entry);
  const int64_t size = fewSums ? kResidentBytesOfFewSums : kResidentBytes;
  const int64_t most = isMap(problem)                    ? kMapRows
                       : pageOffsetsOfRows(problem) == 1 ? kCollidingRows
                                                         : kResidentRows;
  return rowsOf(size, problem, most);
}

/// Returns what the core's table says about the rows up to which the strategy pays.
static std::optional<int64_t> measuredRows(const Problem& problem, const Isa& isa, Strategy strategy) {
  const auto rows = mostRows(problem, isa, strategy);
  if (!rows) return std::nullopt;
  return std::min(*rows, kResidentRows);
}

Schedule defaultSchedule(const Problem& problem, const Isa& isa, Strategy strategy) {
  Schedule s = ruleSchedule(problem, isa, strategy);
  if (const TableLine* line = findLine(problem, isa, strategy)) applyLine(*line, problem, isa, s);
  fitClauses(problem, s);
  return s;
}

std::vector<DefaultCandidate> defaultCandidates(const Problem& problem, const Isa& isa) {
  std::vector<DefaultCandidate> list;
  for (Strategy strategy : strategies(problem)) list.push_back({defaultSchedule(problem, isa, strategy)});
  if (list.size() < 2) return list;
  if (problem.spec->perFeature()) {
    if (problem.layout == Layout::ChannelsFirst)
      return channelCandidates(problem, list[0].schedule, list[1].schedule);
    list[1].limits.rowsMax = measuredRows(problem, isa, list[1].schedule.strategy);
    if (!list[1].limits.rowsMax) list[1].limits.rowsMax = residentRows(problem, isa);
    return list;
  }
  list[1].limits.rowsMax = measuredRows(problem, isa, list[1].schedule.strategy);
  if (!list[1].limits.rowsMax) list[1].limits.rowsMax = splitRows(problem, isa);
  if (!list[1].limits.rowsMax) list.pop_back();
  return list;
}

}  // namespace normc::codegen::cpu
