#include "codegen/targets/cpu/CpuSpace.h"

#include <algorithm>

#include "codegen/targets/Knobs.h"

namespace normc::codegen::cpu {
namespace {

/// Returns the powers of two from `least` to `most`, and the default.
std::vector<int64_t> powers(int64_t least, int64_t most, int64_t byDefault) {
  std::vector<int64_t> values;
  for (int64_t value = least; value <= most; value *= 2) values.push_back(value);
  values.push_back(byDefault);
  return eachOnce(std::move(values));
}

bool isLarge(const Problem& problem, const Workload& load) {
  return double(load.totalRows()) * double(load.features) * double(bytes(problem.data)) >=
         double(kLargeBytes);
}

/// Returns the values of `stream`. In a call that is not large it changes nothing but one branch.
std::vector<int64_t> streamsFor(const Problem& problem, const Schedule& s, const Workload& load) {
  return isLarge(problem, load) ? eachOnce({0, 1, 4, 8, s.stream}) : eachOnce({0, s.stream});
}

int64_t elementsOfRun(const Problem& problem, const Workload& load) {
  return problem.layout == Layout::FeaturesLast ? load.features : load.rows;
}

/// Returns nanoseconds for a byte of data of that size: in a core's own cache, in the shared cache or in
/// memory.
double memoryCost(int64_t footprint, const Workload& load) {
  if (footprint <= load.ownCache * load.threads / 2) return 0.015;
  return footprint <= load.sharedCache / 2 ? 0.03 : 0.1;
}

struct Transfers {
  double fromMemory = 0;  ///< X-sized transfers
  double fromCache = 0;   ///< and those that find their data on chip again
};

/// Returns the transfers of a call. A slab that does not fit in the cache of a core is read from memory in
/// each sweep.
Transfers transfersOf(const Problem& problem, const Schedule& s, const Workload& load,
                      const TrafficBounds& traffic) {
  const bool perFeature = problem.spec->perFeature();
  const double inputs = isBackward(problem.entry) ? 2 : 1;
  const bool strips = usesColumnTiles(problem, s.strategy),
             channels = problem.layout == Layout::ChannelsFirst && perFeature;
  const int64_t width = strips     ? s.vector * s.tile
                        : channels ? load.totalRows()
                                   : elementsOfRun(problem, load);
  const int64_t height = strips ? load.totalRows() : s.stream && isLarge(problem, load) ? s.stream : s.rows;
  const bool stays = double(width * height * bytes(problem.data)) * inputs <= 0.5 * double(load.ownCache);
  const double least = double(traffic.kept.total()), most = double(traffic.apart.total());
  return stays ? Transfers{least, most - least} : Transfers{most, 0};
}

/// Returns nanoseconds of arithmetic for an element: instructions, the latency of accumulators, and spilled
/// registers.
double computeCost(const Problem& problem, const Schedule& s, const Isa& isa, bool strips) {
  const int64_t lanes = isa.vectorBytes / bytes(problem.statistics());
  const double used = double(std::min(s.vector, lanes)),
               split = std::max(1.0, double(s.vector) / double(lanes));
  const double sums = isBackward(problem.entry) ? 2 : 1;
  const double chains = strips ? double(s.tile) * split : double(s.rows * s.unroll) * split;
  constexpr double kLatency = 4, kClock = 3;  // cycles of an addition; cycles in a nanosecond
  const double instructions = isBackward(problem.entry) ? 8 : 5;
  double cycles = instructions / 2 + 1.0 / double(strips ? s.tile : s.unroll);  // loop overhead is shared
  cycles = std::max(cycles, kLatency / chains);
  const double live = chains * sums + double(s.rows) + 4;
  if (live > double(isa.registers)) cycles += 0.5 * (live - double(isa.registers));
  return cycles / used / kClock;
}

/// Returns nanoseconds for an element that a statistic costs between the sweeps of a row: a horizontal sum, a
/// root and a division, for which the rows of a step wait together. With `ahead` nothing waits. But the loop
/// carries values, and twice as many rows have to stay in cache, so a wide row loses by it.
double statisticLatencyCost(const Problem& problem, const Schedule& s, const Workload& load) {
  const int64_t known = statisticWidth(problem);
  if (!known) return 0;
  const double width = double(problem.features ? known : load.features);
  constexpr double kWait = 100, kCarried = 6, kKept = 0.1, kClock = 3;
  return (s.ahead ? kCarried / width + kKept : kWait / double(s.rows) / width) / kClock;
}

}  // namespace

/// The most rows for which `split` is tried.
static constexpr int64_t kMostSplit = 64;

std::vector<KnobSpace> knobSpaces(const Problem& problem, const Isa& isa, const Workload& load) {
  std::vector<KnobSpace> spaces;
  for (Strategy strategy : strategies(problem)) {
    if (strategy == Strategy::Split && load.totalRows() > kMostSplit) continue;
    const Schedule s = defaultSchedule(problem, isa, strategy);
    const bool strips = usesColumnTiles(problem, strategy), split = strategy == Strategy::Split;
    const bool runs = problem.layout == Layout::ChannelsFirst && strategy == Strategy::Streamed;
    const auto only = [](int64_t value) { return std::vector<int64_t>{value}; };
    KnobSpace space{name(strategy).str(), {}};
    space.knobs.push_back({"vector", powers(std::max<int64_t>(2, s.vector / 2), 2 * s.vector, s.vector)});
    space.knobs.push_back({"rows", powers(1, strips ? 2 : 8, s.rows)});
    space.knobs.push_back({"unroll", strips ? only(s.unroll) : powers(1, 8, s.unroll)});
    space.knobs.push_back({"tile", strips  ? powers(2, 16, s.tile)
                                   : split ? powers(1, 8, s.tile)
                                           : only(s.tile)});
    space.knobs.push_back({"grain", strips          ? only(s.grain)
                                    : split || runs ? powers(s.grain / 4, 4 * s.grain, s.grain)
                                                    : eachOnce({8, 32, 128, s.grain})});
    space.knobs.push_back({"stream", strips || split ? only(s.stream) : streamsFor(problem, s, load)});
    // Without a tail there is nothing to choose.
    const bool tail = problem.layout == Layout::ChannelsFirst || !problem.features ||
                      *problem.features % (2 * s.vector) != 0;
    const bool choice = tail && !s.scalarTail;
    space.knobs.push_back({"scalar_tail", choice ? std::vector<int64_t>{0, 1} : only(s.scalarTail), true});
    space.knobs.push_back(
        {"ahead", statisticWidth(problem) && !split ? std::vector<int64_t>{0, 1} : only(0), true});
    space.knobs.push_back(
        {"in_turn", canStoreInTurn(problem, s.strategy) ? std::vector<int64_t>{0, 1} : only(0), true});
    const bool large = isLarge(problem, load) && s.stream;
    space.knobs.push_back({"fetch", large ? std::vector<int64_t>{0, 1} : only(s.fetch), true});
    space.knobs.push_back({"nta", large ? std::vector<int64_t>{0, 1} : only(s.nta), true});
    space.knobs.push_back(
        {"wide",
         !isLarge(problem, load) && canBeWide(problem, strategy) ? std::vector<int64_t>{0, 1} : only(s.wide),
         true});
    spaces.push_back(std::move(space));
  }
  return spaces;
}

const Predictor::Facts& Predictor::factsOf(Strategy strategy) {
  const auto [at, isNew] = facts_.try_emplace(strategy);
  if (isNew) {
    at->second.byDefault = defaultSchedule(problem_, isa_, strategy);
    llvm::cantFail(
        withPlan(problem_, strategy, [&](KernelOp kernel) { at->second.traffic = trafficBoundsOf(kernel); }));
  }
  return at->second;
}

double Predictor::operator()(const Schedule& s, const Workload& load) {
  const Problem& problem = problem_;
  const auto& [byDefault, traffic] = factsOf(s.strategy);
  const bool strips = usesColumnTiles(problem, s.strategy);
  const double elements = double(load.totalRows()) * double(load.features), size = bytes(problem.data);
  const Transfers moved = transfersOf(problem, s, load, traffic);
  const int tensors = isBackward(problem.entry) ? 3 : 2;
  double perByte = memoryCost(int64_t(elements * size) * tensors, load);
  if (strips)
    perByte *= std::max(1.0, 128.0 / (double(s.vector * s.tile) * size));  // narrow strips waste lines
  const bool split = s.strategy == Strategy::Split;
  // One of the two sweeps goes down narrow strips, whose rows share few offsets in a page.
  if (split) perByte *= (1 + std::max(1.0, 256.0 / (double(s.vector * s.tile) * size))) / 2;
  const bool large = isLarge(problem, load);
  if (large && s.stream) perByte *= 0.7;  // a non-temporal store does not read the cache line first
  // Whole channels: the runs of a channel are far apart, one in each segment.
  constexpr double kLongRun = 8 << 10;
  if (large && load.segments > 1 && double(load.rows) * size < kLongRun &&
      problem.layout == Layout::ChannelsFirst && problem.spec->perFeature() &&
      s.strategy == Strategy::Resident)
    perByte *= 1.5;
  const double memory = elements * size * (moved.fromMemory * perByte + moved.fromCache * 0.015);

  double compute =
      elements * (computeCost(problem, s, isa_, strips) + statisticLatencyCost(problem, s, load));
  const int64_t run = elementsOfRun(problem, load), rest = run % s.vector;
  if (s.scalarTail && !strips) compute += elements / double(run) * double(rest) * 1.0;
  // Rows at a multiple of a page fall into the same sets of the first-level cache.
  if (s.rows > 2 && int64_t(double(run) * size) % kPage == 0) compute *= 1 + 0.02 * double(s.rows);

  const double units = split    ? elements / double(s.grain)
                       : strips ? double(run) / double(s.vector * s.tile)
                                : double(load.totalRows()) / double(s.grain);
  const double tasks = std::max(1.0, units), workers = std::min(double(load.threads), tasks);
  constexpr double kTask = 150;
  // In a large call with `stream`, `rows` changes nothing; in another call `stream` changes almost nothing.
  // The penalty leaves one schedule of each set that would take the same time.
  if (large ? s.stream && s.rows != byDefault.rows : s.stream != byDefault.stream) compute *= 1.05;
  // The smaller part still costs a little, which orders schedules that memory limits alike.
  return (std::max(memory, compute) + 0.2 * std::min(memory, compute) + kTask * tasks) / workers;
}

}  // namespace normc::codegen::cpu
