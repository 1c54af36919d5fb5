#include "codegen/targets/cuda/Space.h"

#include <algorithm>
#include <cmath>

#include "codegen/targets/Knobs.h"
#include "codegen/targets/cuda/Defaults.h"
#include "codegen/targets/cuda/Traits.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cuda {
namespace {

/// Bytes of the runs of a step from which on shared memory is worth a trial.
constexpr int64_t kLongRun = 32 << 10;
/// Returns the values and the default, ascending and once each.
std::vector<int64_t> around(std::vector<int64_t> values, int64_t byDefault) {
  values.push_back(byDefault);
  return eachOnce(std::move(values));
}

/// Returns the numbers of accesses of a thread with which some team holds one run exactly.
std::vector<int64_t> tilesOf(const KernelTraits& traits, const Arch& arch) {
  std::vector<int64_t> tiles{0};
  const int64_t lanes = arch.accessBytes / traits.dataBytes;
  for (int64_t vector = 1; traits.width && vector <= lanes; vector *= 2)
    for (int64_t team = 1; team <= limits::kBlockThreads; team *= 2)
      if (int64_t tile = llvm::divideCeil(traits.width, vector * team); tile <= 32) tiles.push_back(tile);
  return tiles;
}

/// Returns the accesses in shared memory that are worth a trial: for long rows, as many as in registers, in
/// large blocks.
std::vector<int64_t> sharedOf(const KernelTraits& traits, const Arch& arch) {
  std::vector<int64_t> accesses{0};
  const int64_t whole = arch.accessBytes / traits.dataBytes;
  if (!traits.lines || traits.width * traits.dataBytes * traits.reads < kLongRun) return accesses;
  for (int64_t team : {256, 512})
    if (int64_t half = traits.width / (whole * team) / 2; half > 0) accesses.push_back(half);
  return accesses;
}

}  // namespace

KnobSpace knobSpace(const KernelTraits& traits, const Arch& arch, Strategy strategy) {
  const Schedule s = defaultSchedule(traits, arch, strategy);
  const bool runs = traits.lines || traits.blocks,
             partials = traits.partials || traits.streams || traits.runPartials;
  const int64_t lanes = arch.accessBytes / traits.dataBytes;
  std::vector<int64_t> vectors{1};
  while (vectors.back() < lanes) vectors.push_back(2 * vectors.back());
  KnobSpace space{name(strategy).str(), {}};
  space.knobs.push_back({"threads", around({64, 128, 256, 512, limits::kBlockThreads}, s.threads)});
  space.knobs.push_back({"team", around({4, 8, 16, 32, 64, 128, 256, 512}, s.team)});
  space.knobs.push_back({"vector", around(std::move(vectors), s.vector)});
  space.knobs.push_back({"tile", around(runs ? tilesOf(traits, arch) : std::vector<int64_t>{1}, s.tile)});
  space.knobs.push_back({"rows", around({1, 2, 4}, s.rows)});
  space.knobs.push_back({"chunks", partials ? around({s.chunks / 2 + 1, 2 * s.chunks}, s.chunks)
                                            : std::vector<int64_t>{s.chunks}});
  space.knobs.push_back({"blocks", around({1, 2, 4}, s.blocks)});
  std::vector<int64_t> ahead{0, 1, 2, 4};
  if (arch.clusters()) ahead.insert(ahead.end(), {5, 7});
  space.knobs.push_back({"prefetch", traits.lines     ? ahead
                                     : traits.streams ? std::vector<int64_t>{0, 1, 2, 3}
                                                      : std::vector<int64_t>{s.prefetch.knob()}});
  const bool clusters = traits.lines && traits.width && arch.clusters();
  space.knobs.push_back(
      {"cluster",
       around(clusters ? std::vector<int64_t>{1, 2, 4, 8, 16} : std::vector<int64_t>{1}, s.cluster)});
  space.knobs.push_back({"hints", {0, 1, 2}});
  const bool meets = traits.columns && traits.sweepsColumnsTwice && !traits.segmentColumns;
  std::vector<int64_t> holds{0};
  if (traits.columns) holds.push_back(s.hold / 2);
  if (traits.lines && traits.heldBytes) holds.push_back(1);
  if (meets && !arch.clusters() && s.hold > 0) holds.push_back(s.hold - 1);  // what a grid leaves room for
  space.knobs.push_back({"hold", around(std::move(holds), s.hold)});
  const int64_t all = arch.multiprocessors;
  std::vector<int64_t> grids{1};
  if (meets) grids = {1, all / 8, all / 4, all / 2, all};
  const bool wide =
      traits.lines && !traits.conditional && traits.width * traits.dataBytes * traits.reads >= 4 * kLongRun;
  if (wide && !arch.clusters()) grids = {1, 2, 4, 8};
  space.knobs.push_back({"grid", around(std::move(grids), s.grid)});
  space.knobs.push_back({"shared", around(sharedOf(traits, arch), s.shared)});
  return space;
}

/// Returns the transfers of columns, divided by the share of the device that their blocks keep busy.
static double columnsCost(const KernelTraits& traits, const Schedule& s, const Arch& arch,
                          const Workload& load) {
  const double rows = double(std::max<int64_t>(load.totalRows(), 1));
  const double again = traits.sweepsColumnsTwice ? 1 - std::min(1.0, double(heldRows(s)) / rows) : 0;
  const double blocks = double(llvm::divideCeil(load.features, columnsOf(s)) * s.cluster * s.grid);
  const double busy = std::min(1.0, blocks / double(arch.multiprocessors));
  return (double(traits.reads) * (1 + again) + 1) / busy;
}

double predict(const KernelTraits& traits, const Schedule& s, const Arch& arch, const Workload& load) {
  const double elements = double(load.totalRows()) * double(load.features);
  const bool again = traits.blocks || (traits.lines && s.tile == 0);  // a run that is walked twice
  double transfers =
      traits.columns ? columnsCost(traits, s, arch, load) : double(traits.reads) * (again ? 2 : 1) + 1;
  if (traits.streams && traits.rereads) transfers += double(traits.reads);
  // Lanes behind the end of a run are idle.
  const double held = double(s.team * s.cluster * (traits.lines ? s.grid : 1) * s.vector *
                             std::max<int64_t>(s.tile + s.shared, 1));
  const double useful = s.tile > 0 && traits.width ? std::min(1.0, double(traits.width) / held) : 1;
  // Little's law: bytes under way on one multiprocessor against what its share of the bandwidth needs.
  constexpr double kNeeded = 40 << 10;
  const double blocks = double(std::min(std::max<int64_t>(s.blocks, 1), arch.blocksOf(s.threads)));
  const double perThread =
      double(std::max<int64_t>(s.tile + s.shared, 1) * s.vector * s.rows * traits.reads * traits.dataBytes) *
      double(1 + s.prefetch.depth);
  const double underWay = blocks * double(s.threads) * std::min(perThread, 256.0);
  const double rate = std::min(1.0, underWay / kNeeded) * (0.5 + 0.5 * useful);
  const double narrow =
      double(s.vector * traits.dataBytes) < 16 ? 16.0 / double(s.vector * traits.dataBytes) : 1;
  // Warps that share a row wait for each other, and blocks of a cluster longer than warps of a block.
  const double warps = double(s.team * s.cluster) / kWarp;
  const double barriers = (warps > 1 ? 1 + 0.01 * warps : 1) + 0.03 * std::log2(double(s.cluster));
  // A row's part that a block reads of columns or a stream, where that is less than a line of the caches.
  const double part = double(columnsOf(s) * traits.dataBytes);
  const double pieces =
      (traits.columns || traits.streams) && part < kLineBytes ? 1 + 0.1 * (kLineBytes / part - 1) : 1;
  const double partials =
      traits.partials ? double(s.chunks) * double(load.features) * 4.0 * double(traits.partials) : 0;
  // A grid barrier costs about half of the time of two launches.
  const double meeting = s.grid > 1 ? double(32 << 10) * double(arch.multiprocessors) : 0;
  return (elements * double(traits.dataBytes) * transfers + partials + meeting) / rate *
         (0.9 + 0.1 * narrow) * barriers * pieces;
}

std::string family(const KernelTraits& traits, const Schedule& s) {
  std::string words = traits.columns ? "columns" : s.team < 32 ? "lanes" : s.team == 32 ? "warp" : "block";
  const auto add = [&](bool holds, const char* word) {
    if (holds) words.append(" ").append(word);
  };
  add((traits.lines || traits.blocks) && s.tile == 0, "walked");
  add(s.hold > 0, "held");
  add(s.shared > 0, "shared");
  add(s.cluster > 1, "cluster");
  add(s.grid > 1, "grid");
  add(s.prefetch.kind == Prefetch::Async, "copied");
  add(s.prefetch.inBulk(), "bulk");
  return words;
}

}  // namespace normc::codegen::cuda
