// Addresses in the shared memory of a cluster.
#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

/// Returns the same address in the shared memory of the block with that rank, or of a rank that no block has,
/// which LLVM may ask for before a condition, an address that is no memory.
static std::byte* emuMapa(Thread* t, std::byte* p, uint32_t rank, uint32_t site) {
  const auto& blocks = t->block->cluster->blocks;
  Block* holder = blockHolding(*t, p);
  if (!holder)
    t->run->scheduler->fail(*t, Fault::Misuse, "maps " + describe(*t, p) + ", which is not shared memory",
                            site);
  static std::byte* const nowhere = reinterpret_cast<std::byte*>(uintptr_t(16));
  if (rank >= blocks.size()) return nowhere;
  return blocks[rank]->arena + (p - holder->arena);
}

static uint32_t emuRankOf(Thread* t, std::byte* p, uint32_t site) {
  if (Block* holder = blockHolding(*t, p)) return holder->rank;
  t->run->scheduler->fail(*t, Fault::Misuse,
                          "asks for the block of " + describe(*t, p) + ", which is not shared memory", site);
}

static bool emuIsSpace(Thread* t, std::byte* p, uint32_t space) {
  Block* holder = blockHolding(*t, p);
  bool local = p >= t->stackEnd && p < t->stackTop;
  switch (space) {
    case Space::Shared:
      return holder == t->block;
    case Space::Distributed:
      return holder;
    case Space::Local:
      return local;
    case Space::Global:
      return !holder && !local;
    default:
      return false;
  }
}

std::span<const Hook> addressHooks() {
  static const Hook hooks[] = {hook("emu.mapa", emuMapa), hook("emu.rankof", emuRankOf),
                               hook("emu.isspace", emuIsSpace)};
  return hooks;
}

}  // namespace normc::emulator
