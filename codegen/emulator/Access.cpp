// Memory accesses: address, permission, effect.
#include <algorithm>
#include <cstring>

#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

[[noreturn, gnu::cold, gnu::noinline]] static void runaway(Thread& t, uint32_t site) {
  t.run->scheduler->fail(t, Fault::Runaway,
                         "the launch has made " + std::to_string(t.run->options.maxSteps) +
                             " steps and is not done; a loop does not end, or Options::maxSteps is too low",
                         site);
}

void step(Thread& t, uint32_t site) {
  if (++t.run->report.steps > t.run->options.maxSteps) runaway(t, site);
}

//===-- Places --------------------------------------------------------------------===//

static Zone* sharedZone(Block& block, const std::byte* p, uint64_t bytes) {
  for (Zone& zone : block.zones)
    if (zone.holds(p, bytes)) return &zone;
  return nullptr;
}

Block* blockHolding(const Thread& t, const std::byte* p) {
  for (Block* block : t.block->cluster->blocks)
    if (p >= block->arena &&
        p < block->arena + block->storage.size() - (block->arena - block->storage.data()))
      return block;
  return nullptr;
}

static bool onStack(const Thread& t, const std::byte* p, uint64_t bytes) {
  return p > t.stackEnd && p + bytes <= t.stackTop;
}

static Zone* programZone(const Run& run, const std::byte* p, uint64_t bytes) {
  for (Zone* zone : run.programZones)
    if (zone->holds(p, bytes)) return zone;
  return nullptr;
}

std::string describe(const Thread& t, const std::byte* p) {
  // The nearest region is most likely the one of a wrong index.
  auto relative = [&](const Zone& zone) {
    int64_t offset = p - zone.base;
    std::string text =
        zone.name + (offset < 0 ? " - " : " + ") + std::to_string(offset < 0 ? -offset : offset);
    if (zone.block && zone.block != t.block) text += " of block " + zone.block->index.text();
    return text + " (" + zone.name + " has " + std::to_string(zone.bytes) + " bytes)";
  };
  const Zone* nearest = nullptr;
  uint64_t distance = 1 << 20;
  auto consider = [&](const Zone& zone) {
    uint64_t d = p < zone.base                ? zone.base - p
                 : p < zone.base + zone.bytes ? 0
                                              : p - (zone.base + zone.bytes) + 1;
    if (d < distance) {
      distance = d;
      nearest = &zone;
    }
  };
  if (Block* block = blockHolding(t, p)) {
    for (const Zone& zone : block->zones) consider(zone);
    if (!nearest) return "shared memory + " + std::to_string(p - block->arena) + " (the kernel has none)";
  } else {
    for (const auto& zone : t.run->memory.zones) consider(*zone);
    for (const Zone* zone : t.run->programZones) consider(*zone);
  }
  if (nearest) return relative(*nearest);
  std::string text;
  llvm::raw_string_ostream(text) << "address " << static_cast<const void*>(p) << ", which is in no region";
  return text;
}

[[noreturn]] static void outOfBounds(Thread& t, std::byte* p, uint64_t bytes, uint32_t site, uint8_t flags,
                                     const char* why = "") {
  std::string what = flags & Site::Write ? "writes " : "reads ";
  t.run->scheduler->fail(t, Fault::OutOfBounds,
                         what + std::to_string(bytes) + " bytes at " + describe(t, p) + why, site);
}

/// Checks an access to the shared memory of another block: the block must be known to have begun, and none of
/// its threads may have exited.
static void checkDistributed(Thread& t, Zone& zone, std::byte* p, uint64_t bytes, uint32_t site,
                             uint8_t flags) {
  if (zone.block == t.block) return;
  if (!t.clusterKnown)
    t.run->scheduler->fail(
        t, Fault::Race,
        "touches " + describe(t, p) + " before the first cluster barrier: that block may not have begun",
        site);
  if (zone.block->exited)
    outOfBounds(t, p, bytes, site, flags, ", of which threads have already exited: the memory may be gone");
}

Zone& zoneOf(Thread& t, std::byte* p, uint64_t bytes, uint32_t site, uint8_t flags) {
  Run& run = *t.run;
  uint8_t space = run.sites[site].space;
  if (space == Space::Shared || space == Space::Distributed) {
    if (Zone* zone = sharedZone(*t.block, p, bytes)) return *zone;
    Block* block = blockHolding(t, p);
    if (block && block != t.block && space == Space::Distributed)
      if (Zone* zone = sharedZone(*block, p, bytes)) {
        checkDistributed(t, *zone, p, bytes, site, flags);
        return *zone;
      }
    outOfBounds(
        t, p, bytes, site, flags,
        block && block != t.block ? ", which is another block's: the pointer is not a distributed one" : "");
  }
  Zone* zone = run.memory.find(p, bytes);
  if (!zone) zone = programZone(run, p, bytes);
  if (!zone && space == Space::Generic)
    if (Block* block = blockHolding(t, p); block && (zone = sharedZone(*block, p, bytes)))
      checkDistributed(t, *zone, p, bytes, site, flags);
  if (!zone) outOfBounds(t, p, bytes, site, flags);
  return *zone;
}

//===-- Checks of an access ----------------------------------------------------------===//

/// Not part of `access`, which takes most of the time of a kernel, so that its frame stays small.
[[noreturn, gnu::cold, gnu::noinline]] static void misaligned(Thread& t, std::byte* p, uint64_t bytes,
                                                              uint32_t site, uint8_t flags) {
  t.run->scheduler->fail(t, Fault::Misaligned,
                         std::string(flags & Site::Write ? "writes " : "reads ") + std::to_string(bytes) +
                             " bytes at " + describe(t, p) + "; the instruction promises a multiple of " +
                             std::to_string(t.run->sites[site].align),
                         site);
}

/// True if the bytes of the access have to be checked.
static bool hasRules(const Zone& zone, uint8_t flags) {
  return ((flags & Site::Write) && zone.readOnly) || !zone.initialised.empty() || !zone.forbidden.empty();
}

[[gnu::noinline]] static void checkBytes(Thread& t, Zone& zone, uint64_t offset, uint64_t bytes,
                                         uint32_t site, uint8_t flags) {
  auto fail = [&](Fault fault, const char* verb, const std::string& rest) {
    t.run->scheduler->fail(
        t, fault, verb + std::to_string(bytes) + " bytes at " + describe(t, zone.base + offset) + rest, site);
  };
  if ((flags & Site::Write) && zone.readOnly) fail(Fault::ReadOnly, "writes ", ", which is read-only");
  if (!zone.forbidden.empty())
    for (uint64_t i = offset; i < offset + bytes; ++i)
      if (zone.forbidden[i])
        fail(Fault::OutOfBounds, flags & Site::Write ? "writes " : "reads ",
             "; byte " + std::to_string(i) + " lies in a gap between rows");
  if (zone.initialised.empty()) return;
  auto* init = zone.initialised.data() + offset;
  if ((flags & Site::Read) && std::memchr(init, 0, bytes))
    fail(Fault::Uninitialised, "reads ", ", which nothing has written");
  if (flags & Site::Write) std::fill_n(init, bytes, 1);
}

static void count(Zone& zone, uint64_t bytes, const Site& site, uint8_t flags) {
  Traffic& traffic = zone.traffic;
  zone.touched = true;
  uint64_t accesses = std::max<uint64_t>(1, bytes >> site.width);
  if (flags & Site::Read) {
    traffic.bytesLoaded += bytes;
    traffic.loads[site.width] += accesses;
  }
  if (flags & Site::Write) {
    traffic.bytesStored += bytes;
    traffic.stores[site.width] += accesses;
  }
  if ((flags & Site::Copied) && (flags & Site::Read)) traffic.bytesCopied += bytes;
}

void lookAhead(Thread& t, std::byte* p, uint64_t bytes) {
  if (t.run->options.checks == Checks::None) return;
  Zone* zone = t.run->memory.find(p, bytes);
  if (zone && !zone->initialised.empty()) checkBytes(t, *zone, p - zone->base, bytes, t.site, Site::Read);
}

void access(Thread& t, std::byte* p, uint64_t bytes, uint32_t index, uint8_t flags, Writer writer) {
  Run& run = *t.run;
  if (run.options.checks == Checks::None || bytes == 0) return;
  step(t, index);
  const Site& site = run.sites[index];
  if (reinterpret_cast<uintptr_t>(p) & (site.align - 1)) misaligned(t, p, bytes, index, flags);
  Zone* zone = run.lastZone[index];
  if (!zone || !zone->holds(p, bytes) || (zone->block && zone->block != t.block)) {
    const bool mayBeLocal = site.space == Space::Generic || site.space == Space::Local;
    if (mayBeLocal && onStack(t, p, bytes)) return;
    if (site.space == Space::Local) outOfBounds(t, p, bytes, index, flags, ": it is no local memory");
    zone = &zoneOf(t, p, bytes, index, flags);
    run.lastZone[index] = zone;
  }
  uint64_t offset = p - zone->base;
  const uint64_t used = site.used ? site.used : bytes;
  if (hasRules(*zone, flags)) checkBytes(t, *zone, offset, used, index, flags);
  if (!zone->block) count(*zone, bytes, site, flags);
  if (run.checksRaces() && !(zone->readOnly && !zone->block))
    order(t, *zone, offset, used, index, flags, writer);
}

//===-- Hooks -----------------------------------------------------------------------===//

static void emuAccess(Thread* t, std::byte* p, uint32_t index) {
  const Site& site = t->run->sites[index];
  access(*t, p, site.bytes, index, site.flags);
}

static void emuTick(Thread* t, uint32_t index) { step(*t, index); }

static void emuFault(Thread* t, const char* what, uint32_t index) {
  t->run->scheduler->fail(*t, Fault::Misuse, what, index);
}

/// Returns the address for a 32-bit shared memory address, as in inline PTX.
static std::byte* emuShared(Thread* t, uint32_t low) {
  auto base = reinterpret_cast<uintptr_t>(t->shared);
  return t->shared + int32_t(low - uint32_t(base));
}

std::span<const Hook> accessHooks() {
  static const Hook hooks[] = {hook("emu.access", emuAccess), hook("emu.tick", emuTick),
                               hook("emu.fault", emuFault),

                               hook("emu.shared", emuShared)};
  return hooks;
}

}  // namespace normc::emulator
