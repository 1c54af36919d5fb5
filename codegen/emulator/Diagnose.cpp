// Describes a launch in which no thread can run: the place where each thread waits, and the threads it waits
// for.
#include <bit>

#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

Finding findingOf(const Thread& t, Fault fault, std::string what, uint32_t site) {
  const Run& run = *t.run;
  Finding finding{.fault = fault, .what = std::move(what), .kernel = run.entry.name};
  finding.block = t.block->index;
  finding.thread = {t.sreg[Tid], t.sreg[Tid + 1], t.sreg[Tid + 2]};
  finding.where = run.sites[site].text;
  return finding;
}

std::string nameOfThread(const Run& run, uint32_t number) {
  uint32_t order = run.orderOf(number), index = (number - run.firstThread) % run.stride;
  auto threads = uint32_t(run.launch.block.count());
  std::string of = index < threads ? "" : index < 2 * threads ? "a copy begun by " : "a bulk copy of ";
  std::string text = of + "block " + run.launch.grid.at(run.blockAt[order]).text();
  if (index < 2 * threads) text += " thread " + run.launch.block.at(index % threads).text();
  return text;
}

namespace {
/// Describes where the threads of the resident blocks are.
struct Places {
  const Run& run;

  template <typename F>
  void each(F f) const {
    for (const auto& block : run.blocks)
      for (const Thread& t : block->threads) f(t);
  }

  static const char* state(const Thread& t) {
    switch (t.wait) {
      case Wait::None:
        return "spins";
      case Wait::Barrier:
        return "waits at a barrier";
      case Wait::Warp:
        return "waits for other lanes";
      case Wait::Cluster:
        return "waits for the cluster";
      case Wait::Mbarrier:
        return "waits for an mbarrier";
      case Wait::Exited:
        return "has exited";
    }
    return "";
  }

  static std::string of(const Mbarrier& m) {
    return "(phase " + std::to_string(m.phase) + ": " + std::to_string(m.pending) + " of " +
           std::to_string(m.expected) + " arrivals and " + std::to_string(m.bytes) + " bytes to come)";
  }

  std::string of(const Thread& t) const {
    std::string text = nameOfThread(run, t.number) + " " + state(t);
    if (t.wait == Wait::Mbarrier) text += " " + of(*t.mbarrier);
    if (t.wait != Wait::Exited) text += " at " + run.sites[t.site].text;
    return text;
  }
};
}  // namespace

/// Returns a lane that the mask of a warp instruction names and that is not at the instruction.
static const Thread* missingLane(const Thread& waiting) {
  const Block& block = *waiting.block;
  for (uint32_t rest = waiting.mask; rest; rest &= rest - 1) {
    const Thread& other = block.threads[(waiting.index & ~31u) + std::countr_zero(rest)];
    bool same = other.wait == Wait::Warp && other.site == waiting.site && other.mask == waiting.mask;
    if (!same) return &other;
  }
  return nullptr;
}

static const Thread* missingAtBarrier(const Thread& waiting) {
  for (const Thread& other : waiting.block->threads)
    if (other.wait != Wait::Barrier || other.barrier != waiting.barrier) return &other;
  return nullptr;
}

Finding diagnose(const Run& run, bool spinning) {
  Places places{run};
  const Thread *warp = nullptr, *barrier = nullptr, *other = nullptr;
  uint64_t spins = 0, alive = 0;
  places.each([&](const Thread& t) {
    alive += t.wait != Wait::Exited;
    spins += t.wait == Wait::None;
    if (t.wait == Wait::Warp && !warp) warp = &t;
    if (t.wait == Wait::Barrier && !barrier) barrier = &t;
    if ((t.wait == Wait::Cluster || t.wait == Wait::Mbarrier || t.wait == Wait::None) && !other) other = &t;
  });
  if (warp)
    if (const Thread* missing = missingLane(*warp)) {
      std::string lane = std::to_string(missing->lane);
      std::string what = missing->wait == Wait::Warp && missing->site == warp->site
                             ? "the mask names lane " + lane + ", which executes this with another mask"
                             : "the mask names lane " + lane + ", which does not come";
      Finding finding = findingOf(*warp, Fault::Divergence, what, warp->site);
      finding.earlier = places.of(*missing);
      return finding;
    }
  // If some threads spin, a barrier may only be waiting for them. Then the reason of the spinning is the
  // fault.
  if (barrier && !spins)
    if (const Thread* missing = missingAtBarrier(*barrier)) {
      uint64_t waiting = barrier->block->barriers[barrier->barrier].arrived;
      Finding finding =
          findingOf(*barrier, Fault::Divergence,
                    std::to_string(waiting) + " of " + std::to_string(barrier->block->threads.size()) +
                        " threads wait at a barrier that the others do not reach",
                    barrier->site);
      finding.earlier = places.of(*missing);
      return finding;
    }
  if (!other) other = barrier ? barrier : warp;
  std::string what = spinning ? std::to_string(spins) + " threads spin, and nothing that the other " +
                                    std::to_string(alive - spins) + " do can end it"
                              : "none of " + std::to_string(alive) + " threads can go on";
  if (!run.launch.cooperative && run.blockAt.size() > run.blocks.size() && spinning)
    what += "; " + std::to_string(run.blocks.size()) + " of " + std::to_string(run.blockAt.size()) +
            " blocks are resident, and a barrier of all blocks needs a cooperative launch";
  Finding finding = findingOf(*other, Fault::Deadlock, what, other->site);
  finding.earlier = places.of(*other);
  return finding;
}

}  // namespace normc::emulator
