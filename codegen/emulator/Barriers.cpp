// Barriers of a block, of all or of some of its threads, and of a cluster.
#include <algorithm>

#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

//===-- Block -----------------------------------------------------------------------------===//

static void complete(Block& block, Barrier& barrier) {
  Run& run = *block.run;
  ++run.report.barriers;
  bool everyone = barrier.waiting.size() == block.threads.size();
  if (everyone) {
    mergeBlock(block);
  } else if (run.checksRaces()) {
    mergeThreads(barrier.waiting);
    if (barrier.arrivals)
      for (Thread* t : barrier.waiting) t->view.foreign = joined(t->view.foreign, barrier.arrivals);
  }
  uint64_t votes = uint64_t(barrier.arrived) << 32 | barrier.votes;
  for (Thread* t : barrier.waiting) t->got = votes;
  barrier.arrived = barrier.needed = barrier.votes = 0;
  barrier.arrivals.reset();
  run.scheduler->wakeAll(barrier.waiting);
}

/// `count`: 0 for all threads of the block.
static Barrier& arrive(Thread& t, uint32_t id, uint32_t count, uint32_t site) {
  step(t, site);
  Run& run = *t.run;
  auto refuse = [&](Fault fault, const std::string& what, std::string earlier = {}) {
    run.scheduler->fail(t, fault, what, site, std::move(earlier));
  };
  Block& block = *t.block;
  if (id >= block.barriers.size())
    refuse(Fault::Misuse, "barrier " + std::to_string(id) + "; a block has 16");
  if (count % 32)
    refuse(Fault::Misuse,
           "a barrier of " + std::to_string(count) + " threads; it has to be a multiple of 32");
  uint32_t needed = count ? count : uint32_t(block.threads.size());
  Barrier& barrier = block.barriers[id];
  if (needed > block.threads.size())
    refuse(Fault::Deadlock, "a barrier of " + std::to_string(needed) + " threads in a block of " +
                                std::to_string(block.threads.size()));
  if (barrier.arrived && barrier.needed != needed)
    refuse(Fault::Divergence, "waits at barrier " + std::to_string(id) + " for " + std::to_string(needed) +
                                  " threads, where others wait for " + std::to_string(barrier.needed));
  if (barrier.arrived && !count && barrier.site != site)
    refuse(Fault::Divergence, "is at this barrier, while other threads of the block wait at another one",
           std::to_string(barrier.arrived) + " threads, the first of them " +
               nameOfThread(run, barrier.waiting.front()->number) + ", at " + run.sites[barrier.site].text);
  barrier.needed = needed;
  barrier.site = site;
  ++barrier.arrived;
  return barrier;
}

static uint64_t sync(Thread& t, uint32_t id, uint32_t count, bool vote, uint32_t site) {
  Barrier& barrier = arrive(t, id, count, site);
  barrier.votes += vote;
  barrier.waiting.push_back(&t);
  t.wait = Wait::Barrier;
  t.barrier = id;
  t.site = site;
  if (barrier.arrived == barrier.needed) complete(*t.block, barrier);
  t.run->scheduler->wait(t);
  return t.got;
}

static void emuBarrier(Thread* t, uint32_t id, uint32_t count, uint32_t site) {
  sync(*t, id, count, false, site);
}

static void emuBarrierArrive(Thread* t, uint32_t id, uint32_t count, uint32_t site) {
  Barrier& barrier = arrive(*t, id, count, site);
  if (t->run->checksRaces()) {
    barrier.arrivals = joined(barrier.arrivals, knowledge(*t, t->view));
    ++t->view.now;
  }
  if (barrier.arrived == barrier.needed) complete(*t->block, barrier);
}

/// Returns the number of true predicates.
static uint32_t emuBarrierCount(Thread* t, uint32_t id, uint32_t count, bool vote, uint32_t site) {
  return uint32_t(sync(*t, id, count, vote, site));
}
static bool emuBarrierAll(Thread* t, uint32_t id, uint32_t count, bool vote, uint32_t site) {
  uint64_t votes = sync(*t, id, count, vote, site);
  return uint32_t(votes) == votes >> 32;
}

//===-- Cluster ---------------------------------------------------------------------------===//

/// How much further than any thread of the cluster its threads count after an arrival: one that arrives later
/// may synchronise so often until then.
static constexpr uint32_t kMostUntilArrival = 1 << 8;

/// Begins a phase: a count that no thread has reached divides the accesses before an arrival from those after
/// it, the same for all blocks, because a cell that several of them have read keeps the largest.
static void beginPhase(Cluster& cluster) {
  for (const Block* block : cluster.blocks)
    for (const Thread& t : block->threads)
      cluster.count = std::max(cluster.count, t.view.now + kMostUntilArrival);
}

/// Gives what the thread knows now to those that wait for the end of the phase, and not what it does later.
static void give(Cluster& cluster, Thread& t) {
  if (t.view.now > cluster.count) cluster.given.raiseThread(t.number, t.view.now);
  if (t.view.foreign && t.view.foreign != cluster.lastGiven) cluster.given.join(*t.view.foreign);
  cluster.lastGiven = t.clusterGiven = t.view.foreign;
  t.view.now = std::max(t.view.now, cluster.count) + 1;
}

/// The barrier is passed when all threads that have not exited have arrived.
static void passCluster(Cluster& cluster) {
  Run& run = *cluster.blocks[0]->run;
  if (cluster.arrived == 0 || cluster.arrived + cluster.exited < cluster.threads) return;
  ++run.report.clusterBarriers;
  cluster.passed.reset();
  if (run.checksRaces() && cluster.released) {
    for (Block* block : cluster.blocks) cluster.given.raiseBlock(block->order, cluster.count);
    cluster.passed = std::make_shared<Clock>(std::move(cluster.given));
  }
  cluster.given = Clock();
  cluster.lastGiven.reset();
  for (Block* block : cluster.blocks)
    for (Thread& t : block->threads) t.clusterArrived = false;
  cluster.arrived = 0;
  cluster.released = false;
  run.scheduler->wakeAll(cluster.waiting);
}

static void emuClusterArrive(Thread* t, bool relaxed, uint32_t site) {
  step(*t, site);
  if (t->clusterOwes)
    t->run->scheduler->fail(*t, Fault::Misuse, "arrives at the cluster barrier twice without a wait between",
                            site);
  Cluster& cluster = *t->block->cluster;
  if (t->run->checksRaces()) {
    if (cluster.arrived == 0) beginPhase(cluster);
    give(cluster, *t);
  }
  t->clusterArrived = true;
  t->clusterOwes = true;
  t->site = site;
  ++cluster.arrived;
  cluster.released |= !relaxed;
  passCluster(cluster);
}

/// Takes over what the threads of the cluster knew when they arrived. A phase ends only when this thread has
/// arrived, so the last one that has ended is the one it waits for.
static void take(const Cluster& cluster, Thread& t) {
  t.clusterKnown = true;
  const SharedClock given = std::exchange(t.clusterGiven, nullptr);
  if (!cluster.passed) return;
  t.view.foreign = given == t.view.foreign ? cluster.passed : joined(t.view.foreign, cluster.passed);
  t.view.block = std::max(t.view.block, cluster.passed->ofBlock(t.block->order));
}

static void emuClusterWait(Thread* t, uint32_t site) {
  step(*t, site);
  if (!t->clusterOwes)
    t->run->scheduler->fail(*t, Fault::Misuse, "waits at the cluster barrier without having arrived", site);
  t->clusterOwes = false;
  if (t->clusterArrived) {
    t->wait = Wait::Cluster;
    t->site = site;
    t->block->cluster->waiting.push_back(t);
    t->run->scheduler->wait(*t);
  }
  take(*t->block->cluster, *t);
}

/// Reports accesses by other blocks that nothing orders before the end of the block: its shared memory ends
/// with its last thread.
static void checkNobodyUses(Thread& t) {
  const Run& run = *t.run;
  for (Zone& zone : t.block->zones)
    zone.cells.each(zone.bytes, [&](const Cell& cell) {
      auto check = [&](uint32_t number, uint32_t count, uint32_t site, const char* how) {
        if (number < run.firstResident || run.orderOf(number) == t.block->order) return;
        if (known(t, number, count & Cell::kCount)) return;
        run.scheduler->fail(t, Fault::Race,
                            "its block ends, and with it " + zone.name + ", which another block " + how +
                                "; nothing orders the two",
                            0, nameOfThread(run, number) + " at " + run.sites[site].text);
      };
      check(cell.reader, cell.read, cell.readSite, "reads");
      check(cell.writer, cell.written, cell.writeSite, "writes");
    });
}

void leaveCluster(Thread& t) {
  Cluster& cluster = *t.block->cluster;
  if (cluster.blocks.size() > 1 && t.block->exited == t.block->threads.size() && t.run->checksRaces())
    checkNobodyUses(t);
  ++cluster.exited;
  if (t.clusterArrived) {
    t.clusterArrived = false;
    --cluster.arrived;
  }
  passCluster(cluster);
}

std::span<const Hook> barrierHooks() {
  static const Hook hooks[] = {hook("emu.barrier", emuBarrier),
                               hook("emu.barrier.arrive", emuBarrierArrive),
                               hook("emu.barrier.count", emuBarrierCount),
                               hook("emu.barrier.all", emuBarrierAll),
                               hook("emu.cluster.arrive", emuClusterArrive),
                               hook("emu.cluster.wait", emuClusterWait)};
  return hooks;
}

}  // namespace normc::emulator
