// The vector clock of the race check: the accesses of other threads that happened before a thread's next one.
// It is small because the threads of a block share most of it.
//
// Each thread counts its synchronisations (`View::now`); an access is recorded as (thread, count). A thread
// may access what another has accessed if its view contains that count. Within a block most of the view is
// two numbers: the counts at the last barrier of the block and at the last one of the warp. Knowledge from
// other operations (fences and atomics, clusters, mbarriers) is a `Clock`, which threads share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace normc::emulator {

class Clock {
 public:
  /// Returns the count up to which every access of the block's threads, or of this one thread, is known.
  uint32_t ofBlock(uint32_t block) const { return find(blocks_, block); }
  uint32_t ofThread(uint32_t thread) const { return find(threads_, thread); }
  size_t blocks() const { return blocks_.size(); }
  const auto& byBlock() const { return blocks_; }  ///< pairs of block and count

  void raiseBlock(uint32_t block, uint32_t count) { raise(blocks_, block, count); }
  void raiseThread(uint32_t thread, uint32_t count) { raise(threads_, thread, count); }
  void join(const Clock&);

 private:
  using Entries = std::vector<std::pair<uint32_t, uint32_t>>;  ///< sorted by the first
  static uint32_t find(const Entries&, uint32_t key);
  static void raise(Entries&, uint32_t key, uint32_t count);
  static void join(Entries&, const Entries&);

  Entries blocks_, threads_;
};

using SharedClock = std::shared_ptr<const Clock>;

/// Returns the least clock that contains both. Either may be null.
SharedClock joined(const SharedClock&, const SharedClock&);

struct View {
  uint32_t now = 1;    ///< own count; accesses are recorded with it
  uint32_t block = 0;  ///< known count of every thread of the block
  uint32_t warp = 0;   ///< known count of every thread of the warp
  std::array<uint32_t, 32>
      lanes{};  ///< known counts of single lanes, after a synchronisation of part of a warp
  SharedClock foreign;
  /// The accesses that asynchronous stores make known when they have arrived: their senders had read and
  /// waited for these, and what they sent depends on them. The senders' own stores are not among them.
  SharedClock read;
};

}  // namespace normc::emulator
