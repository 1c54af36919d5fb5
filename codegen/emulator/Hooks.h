// The functions that translated kernels call. The first argument is always the thread.
#pragma once

#include <span>

#include "codegen/emulator/State.h"

namespace normc::emulator {

struct Hook {
  const char* name;  ///< in the translated module
  void* address;
};

std::span<const Hook> accessHooks();    // Access.cpp
std::span<const Hook> strongHooks();    // Ordering.cpp
std::span<const Hook> warpHooks();      // Warp.cpp
std::span<const Hook> barrierHooks();   // Barriers.cpp
std::span<const Hook> mbarrierHooks();  // Mbarriers.cpp
std::span<const Hook> copyHooks();      // Copies.cpp
std::span<const Hook> addressHooks();   // Addresses.cpp
std::span<const Hook> mathHooks();      // Math.cpp

template <typename F>
Hook hook(const char* name, F* function) {
  return {name, reinterpret_cast<void*>(function)};
}

//===-- What hooks share ----------------------------------------------------------===//

/// Counts a step; ends the launch after too many.
void step(Thread&, uint32_t site);

/// The number of the writer: of a copy that the thread began, or of the thread itself.
struct Writer {
  uint32_t number = 0, count = 0;
};

/// Checks an access of `bytes` bytes and records it. Does not return if it is a fault.
void access(Thread&, std::byte* address, uint64_t bytes, uint32_t site, uint8_t flags, Writer = {});
/// Called before other threads run first: memory that a waiting loop reads must be initialised at its first
/// read. Uses `Thread::site`.
void lookAhead(Thread&, std::byte* address, uint64_t bytes);
/// Returns the zone that holds these bytes; does not return if there is none.
Zone& zoneOf(Thread&, std::byte* address, uint64_t bytes, uint32_t site, uint8_t flags);
/// Returns the name of an address, e.g. `x + 16`.
std::string describe(const Thread&, const std::byte* address);

/// Checks races and uninitialised shared memory, and records the access.
void order(Thread&, Zone&, uint64_t offset, uint64_t bytes, uint32_t site, uint8_t flags, Writer);
/// True if the access of that thread at that count happened before the present operation of t.
bool known(const Thread& t, uint32_t number, uint32_t count);
/// Makes bytes that `from` has written count as written by `thread` now.
void adopt(Thread& thread, std::byte* address, uint64_t bytes, uint32_t from);

/// Returns the part of a thread's clock that other threads may take over.
SharedClock knowledge(const Thread&, const View&);
/// Adds the part of it that is of the thread's own block.
void note(Clock&, const Thread&, const View&);
/// Handles a passed barrier of the whole block: the clock of each thread then contains the clocks of all.
void mergeBlock(Block&);
void mergeWarp(Block&, uint32_t warp, uint32_t mask);
void mergeThreads(std::span<Thread* const>);

/// Completes the thread's copies except those of the last `left` closed groups.
void completeCopies(Thread&, uint32_t left, bool withOpen);

/// Counts an arrival of the thread at the mbarrier, for cp.async.mbarrier.arrive.
void arriveAt(Thread&, std::byte* mbarrier, uint32_t count, uint32_t site);

/// Returns the block of `thread`'s cluster whose shared memory holds the address, or null.
Block* blockHolding(const Thread&, const std::byte* address);

}  // namespace normc::emulator
