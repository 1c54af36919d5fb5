// The state of one launch: its threads, warps, blocks and clusters. Only the host thread that called
// Program::run uses it.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <unordered_map>

#include "codegen/emulator/Clock.h"
#include "codegen/emulator/Emulator.h"
#include "codegen/emulator/Site.h"
#include "codegen/emulator/Zone.h"

namespace normc::emulator {

struct Block;
struct Cluster;
struct Run;

using Context = boost::context::detail::fcontext_t;

/// The reason why a thread does not run.
enum class Wait : uint8_t { None, Barrier, Warp, Cluster, Mbarrier, Exited };

/// A copy that cp.async began and that no wait has completed.
struct Copy {
  std::byte* to;
  uint32_t bytes;
};

struct Mbarrier {
  std::byte* address = nullptr;
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0;  ///< missing in this phase
  uint64_t phase = 0;
  /// The thread that initialised it, and that thread's count then.
  uint32_t initialiser = 0, initialised = 0;
  uint32_t copier = 0;           ///< the thread number for writes of its bulk copies
  SharedClock arriving, passed;  ///< clocks of the arrivals of this phase, and of all phases before
  Clock sending;                 ///< the threads that have sent asynchronous stores in this phase
  uint32_t latest = 0;           ///< the largest count among these, of all phases
  SharedClock sent;              ///< of the phases before
  std::vector<struct Thread*> waiting;
};

struct Thread {
  // Generated code reads these.
  std::array<uint32_t, kSregs> sreg{};
  std::byte* shared = nullptr;

  Run* run = nullptr;
  Block* block = nullptr;
  uint32_t number = 0;  ///< unique in its Memory
  uint32_t index = 0;   ///< in its block
  uint32_t lane = 0;
  Wait wait = Wait::None;
  uint32_t site = 0;  ///< site of the instruction at which it waits
  Context context = nullptr;
  std::byte* stackEnd = nullptr;  ///< lowest address, which has the canary
  std::byte* stackTop = nullptr;

  // A warp instruction: its lanes, its operands, its results.
  uint32_t mask = 0, control = 0;
  uint64_t given = 0, got = 0;
  uint32_t barrier = 0;                 ///< the block barrier that it waits at
  struct Mbarrier* mbarrier = nullptr;  ///< the mbarrier that it waits for
  bool clusterArrived = false;          ///< in the current phase
  bool clusterOwes = false;             ///< it has to wait after its last arrival
  bool clusterKnown = false;            ///< it has waited at a cluster barrier
  SharedClock clusterGiven;             ///< what it knew of other blocks when it arrived

  View view;
  View fenced;  ///< the view that its last fence passes on
  bool hasFenced = false;
  SharedClock observed;                   ///< clocks that strong reads have got; the next fence adds them
  std::vector<std::vector<Copy>> copies;  ///< by group; the last one is open
};

struct Warp {
  uint32_t members = 0, exited = 0, waiting = 0;  ///< masks of lanes
};

struct Barrier {
  uint32_t arrived = 0, needed = 0, site = 0;
  uint32_t votes = 0;    ///< arrivals with a true predicate
  SharedClock arrivals;  ///< clocks of threads that arrived without waiting
  std::vector<Thread*> waiting;
};

struct Block {
  Run* run = nullptr;
  Cluster* cluster = nullptr;
  Dim3 index;
  uint32_t order = 0;  ///< position in the order of beginning
  uint32_t first = 0;  ///< the number of its first thread; the numbers of its copies and mbarriers follow
  uint32_t rank = 0;   ///< rank in its cluster
  uint32_t exited = 0;
  bool fenced = false;  ///< a thread has fenced since the last barrier
  std::byte* arena = nullptr;
  std::vector<std::byte> storage;
  std::vector<Zone> zones;  ///< of its shared memory, by address
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  std::vector<std::unique_ptr<Mbarrier>> mbarriers;
};

struct Cluster {
  std::vector<Block*> blocks;
  uint32_t arrived = 0, exited = 0, threads = 0;
  bool released = false;  ///< an arrival of this phase was not relaxed
  uint32_t count = 0;     ///< the threads count from here on when they have arrived in this phase
  Clock given;            ///< what the threads that have arrived in this phase knew then
  SharedClock lastGiven;  ///< the clock of other blocks' threads that was added to it last
  SharedClock passed;     ///< what a wait for the last phase that has ended makes known
  std::vector<Thread*> waiting;
};

/// What the strong stores of an address pass on.
struct Released {
  SharedClock clock;
  uint32_t thread = 0;          ///< of the last one
  Scope scope = Scope::Device;  ///< the smallest of them
};

struct Run {
  const Entry& entry;
  const Site* sites;
  const Launch& launch;
  const Options& options;
  Memory::State& memory;
  std::vector<Zone*> programZones;  ///< variables of the module in global memory, by address

  Report report;
  std::vector<Zone*> lastZone;                 ///< by site: the zone of its last access
  uint32_t firstThread = 0;                    ///< number of the launch's first thread
  uint32_t firstResident = 0;                  ///< number of the first thread of the resident blocks
  uint32_t begun = 0;                          ///< number of blocks that have begun
  uint32_t stride = 0;                         ///< numbers per block: threads, their copies, its mbarriers
  std::vector<uint32_t> blockAt;               ///< linear index of the block that was n-th to begin
  std::vector<std::unique_ptr<Block>> blocks;  ///< the resident blocks
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::unordered_map<const std::byte*, Released> released;  ///< by address of the strong store
  class Scheduler* scheduler = nullptr;

  bool checksRaces() const { return options.checks == Checks::All; }
  /// True if the number belongs to that block. Dividing by the stride would cost more than the rest of an
  /// access.
  bool isOf(const Block& block, uint32_t number) const { return number - block.first < stride; }
  uint32_t orderOf(uint32_t number) const { return (number - firstThread) / stride; }
};

}  // namespace normc::emulator
