// One launch: the checks of a device, the set of resident blocks, and their initial state.
#include <algorithm>

#include "codegen/emulator/Program.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

static constexpr uint64_t kArenaAlignment = 1024;

//===-- What a device refuses -----------------------------------------------------------===//

static llvm::Error refuse(const Launch& launch, const std::string& why) {
  return llvm::createStringError("launch of '" + launch.function + "' refused: " + why);
}

static llvm::Error check(const Entry& entry, const Launch& launch) {
  const Dim3 &grid = launch.grid, &block = launch.block, &cluster = launch.cluster;
  if (!grid.count() || !block.count() || !cluster.count())
    return refuse(launch, "grid " + grid.text() + ", block " + block.text() + ", cluster " + cluster.text() +
                              "; none of their sides may be 0");
  if (launch.words.size() != entry.parameters)
    return refuse(launch, std::to_string(launch.words.size()) + " parameters given, the kernel takes " +
                              std::to_string(entry.parameters));
  if (block.count() > entry.maxThreads)
    return refuse(launch, "a block of " + std::to_string(block.count()) + " threads; the kernel's limit is " +
                              std::to_string(entry.maxThreads));
  const auto& exact = entry.exactThreads;
  if (exact[0] && (block.x != exact[0] || block.y != exact[1] || block.z != exact[2]))
    return refuse(launch, "block " + block.text() + "; the kernel requires " +
                              Dim3{exact[0], exact[1], exact[2]}.text());
  if (grid.y > limits::kGridY || grid.z > limits::kGridY)
    return refuse(launch, "grid " + grid.text() + "; y and z end at " + std::to_string(limits::kGridY));
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return refuse(launch, "grid " + grid.text() + " is not a multiple of the cluster " + cluster.text());
  if (cluster.count() > limits::kCluster)
    return refuse(launch, "a cluster of " + std::to_string(cluster.count()) + " blocks; the limit is " +
                              std::to_string(limits::kCluster));
  const auto& fixed = entry.cluster;
  if (fixed[0] && (cluster.x != fixed[0] || cluster.y != fixed[1] || cluster.z != fixed[2]))
    return refuse(launch, "cluster " + cluster.text() + "; the kernel requires " +
                              Dim3{fixed[0], fixed[1], fixed[2]}.text());
  uint64_t shared = entry.staticBytes + launch.sharedBytes;
  if (shared > launch.mostShared)
    return refuse(launch, std::to_string(shared) + " bytes of shared memory; the limit is " +
                              std::to_string(launch.mostShared));
  uint64_t numbers = grid.count() * (2 * block.count() + 64);
  if (numbers > (1ull << 31))
    return refuse(launch,
                  std::to_string(grid.count() * block.count()) + " threads are more than can be emulated");
  return llvm::Error::success();
}

//===-- Setting up ------------------------------------------------------------------------===//

static void create(Run& run, Block& block, Cluster& cluster, uint32_t rank) {
  const Entry& entry = run.entry;
  block.run = &run;
  block.cluster = &cluster;
  block.rank = rank;
  uint64_t bytes = entry.dynamicOffset + run.launch.sharedBytes + 64;
  block.storage.resize(bytes + kArenaAlignment);
  auto base = reinterpret_cast<uintptr_t>(block.storage.data());
  block.arena =
      reinterpret_cast<std::byte*>((base + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment);
  auto add = [&](const std::string& name, uint64_t offset, uint64_t size) {
    if (!size) return;
    Zone& zone = block.zones.emplace_back();
    zone.base = block.arena + offset;
    zone.bytes = size;
    zone.name = name;
    zone.block = &block;
  };
  for (const SharedVariable& variable : entry.shared)
    add("@" + variable.name, variable.offset, variable.bytes);
  add("dynamic shared memory", entry.dynamicOffset, run.launch.sharedBytes);
  block.threads.resize(run.launch.block.count());
  block.warps.resize((block.threads.size() + 31) / 32);
  cluster.blocks.push_back(&block);
}

/// Returns the special registers of a thread, except those of its place in the block.
static std::array<uint32_t, kSregs> registersOf(const Run& run, const Block& block, const Dim3& inCluster) {
  const Launch& launch = run.launch;
  std::array<uint32_t, kSregs> sreg{};
  auto put = [&](uint32_t first, const Dim3& value) {
    sreg[first] = value.x;
    sreg[first + 1] = value.y;
    sreg[first + 2] = value.z;
  };
  const Dim3 &c = launch.cluster, &g = launch.grid;
  put(Ntid, launch.block);
  put(Ctaid, block.index);
  put(Nctaid, g);
  put(Clusterid, {block.index.x / c.x, block.index.y / c.y, block.index.z / c.z});
  put(Nclusterid, {g.x / c.x, g.y / c.y, g.z / c.z});
  put(ClusterCtaid, inCluster);
  put(ClusterNctaid, c);
  sreg[ClusterCtarank] = block.rank;
  sreg[ClusterNctarank] = uint32_t(c.count());
  sreg[Nwarpid] = uint32_t(block.warps.size());
  sreg[DynamicSmemSize] = launch.sharedBytes;
  sreg[TotalSmemSize] = uint32_t(run.entry.staticBytes) + launch.sharedBytes;
  return sreg;
}

static void begin(Run& run, Block& block, uint32_t order, const Dim3& inCluster) {
  block.order = order;
  block.exited = 0;
  block.fenced = false;
  for (Barrier& barrier : block.barriers) barrier = Barrier();
  block.mbarriers.clear();
  std::memset(block.arena, 0xFF, run.entry.dynamicOffset + run.launch.sharedBytes);
  block.first = run.firstThread + order * run.stride;
  auto sreg = registersOf(run, block, inCluster);
  for (uint32_t i = 0; i < block.threads.size(); ++i) {
    Thread& t = block.threads[i];
    t = Thread();
    t.sreg = sreg;
    Dim3 place = run.launch.block.at(i);
    t.sreg[Tid] = place.x;
    t.sreg[Tid + 1] = place.y;
    t.sreg[Tid + 2] = place.z;
    t.lane = t.sreg[Laneid] = i % 32;
    t.sreg[Warpid] = i / 32;
    uint32_t bit = 1u << t.lane;
    t.sreg[LanemaskEq] = bit;
    t.sreg[LanemaskLt] = bit - 1;
    t.sreg[LanemaskLe] = bit | (bit - 1);
    t.sreg[LanemaskGt] = ~(bit | (bit - 1));
    t.sreg[LanemaskGe] = ~(bit - 1);
    t.shared = block.arena;
    t.run = &run;
    t.block = &block;
    t.number = block.first + i;
    t.index = i;
  }
  for (uint32_t w = 0; w < block.warps.size(); ++w) {
    auto lanes = std::min<uint32_t>(32, uint32_t(block.threads.size()) - w * 32);
    block.warps[w] = Warp{lanes == 32 ? ~0u : (1u << lanes) - 1};
  }
}

//===-- Running ---------------------------------------------------------------------------===//

/// Runs blocks that must be resident together: all of a cooperative launch, otherwise those of one cluster.
static void runTogether(Run& run, std::span<const uint32_t> clusters) {
  const Dim3 &c = run.launch.cluster, &g = run.launch.grid;
  const Dim3 shape{g.x / c.x, g.y / c.y, g.z / c.z};
  run.firstResident = run.firstThread + uint32_t(run.begun) * run.stride;
  std::fill(run.lastZone.begin(), run.lastZone.end(), nullptr);
  for (size_t i = 0; i < clusters.size(); ++i) {
    Cluster& cluster = *run.clusters[i];
    cluster.arrived = cluster.exited = 0;
    cluster.released = false;
    cluster.count = 0;
    cluster.given = Clock();
    cluster.lastGiven.reset();
    cluster.passed.reset();
    cluster.waiting.clear();
    cluster.threads = uint32_t(c.count() * run.launch.block.count());
    Dim3 at = shape.at(clusters[i]);
    for (uint32_t rank = 0; rank < c.count(); ++rank) {
      Dim3 in = c.at(rank);
      Block& block = *cluster.blocks[rank];
      block.index = {at.x * c.x + in.x, at.y * c.y + in.y, at.z * c.z + in.z};
      run.blockAt[run.begun] = block.index.x + g.x * (block.index.y + g.y * block.index.z);
      begin(run, block, run.begun++, in);
    }
  }
  run.scheduler->runResident();
}

static void collectTraffic(Run& run, const std::vector<Zone*>& zones) {
  for (Zone* zone : zones)
    if (zone->touched) {
      run.report.traffic.push_back(zone->traffic);
      run.report.traffic.back().region = zone->name;
    }
}

llvm::Expected<Report> Program::run(const Launch& launch, Memory& memory, const Options& options) const {
  const Entry* entry = state_->find(launch.function);
  if (!entry) return llvm::createStringError("the program has no entry function '" + launch.function + "'");
  if (llvm::Error error = check(*entry, launch)) return error;

  Run run{.entry = *entry,
          .sites = state_->sites.data(),
          .launch = launch,
          .options = options,
          .memory = memory.state()};
  const auto blocks = uint32_t(launch.grid.count()), perCluster = uint32_t(launch.cluster.count());
  run.stride = uint32_t(2 * launch.block.count() + 64);
  if (uint64_t(run.memory.nextThread) + uint64_t(blocks) * run.stride > UINT32_MAX) {
    run.memory.nextThread = 1;
    for (auto& zone : run.memory.zones) {
      zone->cells.clear();
      zone->readers.clear();
    }
  }
  run.firstThread = run.memory.nextThread;
  run.memory.nextThread += blocks * run.stride;
  run.blockAt.assign(blocks, 0);
  run.lastZone.assign(state_->sites.size(), nullptr);

  std::vector<Zone> variables;
  for (const Variable& variable : state_->variables) {
    Zone& zone = variables.emplace_back();
    zone.base = variable.address;
    zone.bytes = variable.bytes;
    zone.name = "@" + variable.name;
    zone.readOnly = variable.constant;
  }
  std::vector<Zone*> zones;
  for (auto& zone : run.memory.zones) zones.push_back(zone.get());
  for (Zone& zone : variables) {
    zones.push_back(&zone);
    run.programZones.push_back(&zone);
  }
  for (Zone* zone : zones) {
    zone->traffic = Traffic();
    zone->touched = false;
  }

  std::vector<uint32_t> order(blocks / perCluster);
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const size_t together = launch.cooperative ? order.size() : 1;
  auto scheduler = Scheduler::create(run, state_->stacks, together * perCluster * launch.block.count());
  if (!scheduler) return scheduler.takeError();
  run.scheduler = scheduler->get();
  run.scheduler->arrange(order);
  for (size_t i = 0; i < together; ++i) {
    Cluster& cluster = *run.clusters.emplace_back(std::make_unique<Cluster>());
    for (uint32_t rank = 0; rank < perCluster; ++rank)
      create(run, *run.blocks.emplace_back(std::make_unique<Block>()), cluster, rank);
  }
  for (size_t first = 0; first < order.size() && run.report.ok(); first += together)
    runTogether(run, std::span(order).subspan(first, together));
  collectTraffic(run, zones);
  return std::move(run.report);
}

}  // namespace normc::emulator
