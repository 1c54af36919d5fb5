#include "codegen/targets/cpu/DefaultCandidates.h"

#include <algorithm>

#include "codegen/targets/cpu/IntelCove.h"

namespace normc::codegen::cpu {

/// X bytes up to which the resident form of a column norm was measured to be faster: a backward has three tensors.
static constexpr int64_t kResidentBytes = 4 << 20, kResidentBytesBackward = 1 << 20;
/// The same where strips of rows shorter than a page end within lines, unless the other form reads x twice and rows begin at
/// many places in a page; and, of one reading, where they begin at two and sixteen registers cannot hold a wide strip.
static constexpr int64_t kUnalignedResidentBytes = 64 << 10;
/// The same of channels: beyond it their runs, which lie far from each other, are read in the order of memory, and twice.
static constexpr int64_t kResidentRunsBytes = 8 << 20, kResidentRunsBytesBackward = 2 << 20;
/// But not where x would be read twice and the run of a segment has so many bytes (narrow: of 16 bits), beside which going to
/// the next is little; or, backward, half a page where the channel stays in the second-level cache.
static constexpr int64_t kLongRunBytes = 8 << 10, kLongRunBytesNarrow = 32 << 10, kRunBytesBackward = 2 << 10, kChannelBytesBackward = 128 << 10;
/// Rows up to which the sums of such a column, two levels of them, keep their digits.
static constexpr int64_t kResidentRows = 1 << 14;
/// Rows up to which it pays where they are a multiple of a page apart: what it saves are phases, and a second reading
/// where statistics of the batch come first.
static constexpr int64_t kCollidingRows = 2, kCollidingRowsReadTwice = 16, kCollidingRowsBackward = 6;
/// Rows up to which it pays where nothing is summed: what it saves is one phase.
static constexpr int64_t kMapRows = 4;
/// Features and rows of a backward for which it pays to go down the columns, whatever the number of threads: there is no
/// sum per feature to clear, to add to and to add up. Of more rows from twice as many features on.
static constexpr int64_t kSplitFeatures = 1024, kSplitRows = 4, kSplitRowsOfMany = 16;
/// The same where there are no such sums, as in a forward: all that is won is that several threads have a row.
static constexpr int64_t kLongRow = 32768;

/// Nothing is summed.
static bool isMap(const Problem& problem) { return problem.entry == Entry::Infer && problem.spec->running.has_value(); }

/// Rows up to which tasks share each of them; none where that does not pay.
static std::optional<int64_t> splitRows(const Problem& problem, const Isa& isa) {
  const bool sums = problem.entry == Entry::Backward && (problem.spec->scale || problem.spec->bias);
  const int64_t features = problem.features.value_or(0), least = !sums ? kLongRow : isa.registers < 32 ? 2 * kSplitFeatures : kSplitFeatures;
  if (features < least) return std::nullopt;
  if (!sums) return kSplitRows;
  const int64_t rows = features < 2 * least ? kSplitRows : kSplitRowsOfMany;
  return isa.core == Core::Cove ? std::max(rows, splitRowsOnIntelCove(problem, isa)) : rows;
}

/// Whole channels: the first of these offers, in the order of memory, serves any call.
static std::vector<DefaultCandidate> channelCandidates(const Problem& problem, const Schedule& whole, const Schedule& ordered) {
  const bool backward = problem.entry == Entry::Backward, map = isMap(problem);
  const int64_t size = bytes(problem.data), most = map ? kUnalignedResidentBytes : backward ? kResidentRunsBytesBackward : kResidentRunsBytes;
  std::vector<DefaultCandidate> list{{ordered}, {whole, {.rowsMax = std::max<int64_t>(most / (problem.features.value_or(1024) * size), 1)}}};
  if (map || !problem.spec->needsBatchStatistics()) return list;
  if (backward && size > 2) list.push_back({whole, {.rowsMax = kChannelBytesBackward / size, .runMin = kRunBytesBackward / size}});
  list.push_back({whole, {.runMin = (size > 2 ? kLongRunBytes : kLongRunBytesNarrow) / size}});
  return list;
}

static int64_t residentBytes(const Problem& problem, const Isa& isa) {
  const bool backward = problem.entry == Entry::Backward, batch = problem.spec->needsBatchStatistics();
  const bool twice = batch && !backward, crowded = pageOffsetsOfRows(problem) <= 2;
  if (splitsCacheLines(problem) && (crowded || !twice)) return kUnalignedResidentBytes;
  if (isa.registers < 32 && crowded && !batch) return kUnalignedResidentBytes;
  return backward ? kResidentBytesBackward : kResidentBytes;
}

/// Whole columns at a time read memory in narrow strips: worth it while the tensor stays in cache, or rows are few. Where rows
/// begin at one place in a page, a column's share one set of the first-level cache.
static int64_t residentRows(const Problem& problem, const Isa& isa) {
  const int64_t row = problem.features.value_or(1024) * bytes(problem.data);
  if (isa.core == Core::Cove && !isMap(problem))
    if (auto bytes = residentBytesOnIntelCove(problem, isa)) return std::clamp<int64_t>(*bytes / row, 1, kResidentRows);
  const int64_t twice = problem.entry == Entry::Backward ? kCollidingRowsBackward : kCollidingRowsReadTwice;
  const int64_t colliding = problem.spec->needsBatchStatistics() ? twice : kCollidingRows;
  const int64_t most = isMap(problem) ? kMapRows : pageOffsetsOfRows(problem) == 1 ? (row % kPage ? kCollidingRows : colliding) : kResidentRows;
  return std::clamp<int64_t>(residentBytes(problem, isa) / row, 1, most);
}

std::vector<DefaultCandidate> defaultCandidates(const Problem& problem, const Isa& isa) {
  std::vector<DefaultCandidate> list;
  for (Strategy strategy : strategies(problem)) list.push_back({defaultSchedule(problem, isa, strategy)});
  if (list.size() < 2) return list;
  if (problem.spec->perFeature()) {
    if (problem.layout == Layout::ChannelsFirst) return channelCandidates(problem, list[0].schedule, list[1].schedule);
    list[1].limits.rowsMax = residentRows(problem, isa);
    return list;
  }
  list[1].limits.rowsMax = splitRows(problem, isa);
  if (!list[1].limits.rowsMax) list.pop_back();
  return list;
}

}  // namespace normc::codegen::cpu
