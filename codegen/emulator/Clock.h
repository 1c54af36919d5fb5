// The vector clock behind the check for races: which accesses of others happened before the next one of a
// thread. It is small because the threads of a block share most of it.
//
// Each thread counts the synchronisations it took part in (`View::now`); an access is
// remembered as (thread, count). A thread may touch what another has touched if its view contains
// that count. Within a block nearly all of the view is two numbers: the counts at the last
// barrier of the block and at the last one of the warp. What came by other
// ways (fences and atomics, clusters, mbarriers) is a `Clock`, which threads share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace normc::emulator {

class Clock {
 public:
  /// The count up to which every access of the block's threads, or of this one thread, is known.
  uint32_t ofBlock(uint32_t block) const { return find(blocks_, block); }
  uint32_t ofThread(uint32_t thread) const { return find(threads_, thread); }
  size_t blocks() const { return blocks_.size(); }
  const auto& byBlock() const { return blocks_; }  ///< block and count

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

/// The least clock that knows both. Either may be null.
SharedClock joined(const SharedClock&, const SharedClock&);

struct View {
  uint32_t now = 1;                  ///< own count; accesses are remembered with it
  uint32_t block = 0;                ///< what is known of every thread of the block
  uint32_t warp = 0;                 ///< and of the warp
  std::array<uint32_t, 32> lanes{};  ///< and of single lanes, where a part of a warp synchronised
  SharedClock foreign;
};

}  // namespace normc::emulator
