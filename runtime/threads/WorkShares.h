// Distributes the chunks of one phase among threads.
//
// Each thread first takes the chunks of its own share, in order, and then chunks of the other shares. So if
// threads finish their shares, chunk i of one phase, of the next phase and of the next call finds its data in
// the caches of one core. A phase that reads again what an earlier one has read goes the other way: it begins
// with the chunks that were read last, which the caches still hold.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace normc::runtime {

/// The order of the chunks of a share.
enum class ChunkOrder : uint8_t { Ascending, Descending };

/// Returns the chunk that is drawn as number `drawn` of the chunks [first, end), numbers from `first` on.
inline int64_t chunkDrawn(ChunkOrder order, int64_t drawn, int64_t first, int64_t end) {
  return order == ChunkOrder::Ascending ? drawn : first + end - 1 - drawn;
}

class WorkShares {
 public:
  static constexpr int64_t kMost = 64;

  /// Divides the chunks [0, chunks) among `threads` threads, both at least 1. With more than kMost threads,
  /// several have a share in common.
  WorkShares(int64_t chunks, int64_t threads, ChunkOrder order = ChunkOrder::Ascending)
      : chunks_(chunks), shares_(std::min({chunks, threads, kMost})), order_(order) {
    for (int64_t i = 0; i < shares_; ++i) next_[i].chunk.store(firstOf(i), std::memory_order_relaxed);
  }

  /// Calls run(chunk) for chunks that no other thread takes, until none is left.
  template <typename Run>
  void draw(int64_t thread, Run&& run) {
    for (int64_t i = 0; i < shares_ && !allDrawn(); ++i) drawFrom((thread + i) % shares_, run);
    allDrawn_.store(true, std::memory_order_relaxed);
  }

  /// True if a call of `draw` has found no chunk left.
  bool allDrawn() const { return allDrawn_.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Next {
    std::atomic<int64_t> chunk;
  };

  int64_t firstOf(int64_t share) const { return (share * chunks_ + shares_ - 1) / shares_; }

  template <typename Run>
  void drawFrom(int64_t share, Run&& run) {
    std::atomic<int64_t>& next = next_[share].chunk;
    const int64_t first = firstOf(share), end = firstOf(share + 1);
    while (next.load(std::memory_order_relaxed) < end)
      if (const int64_t drawn = next.fetch_add(1, std::memory_order_relaxed); drawn < end)
        run(chunkDrawn(order_, drawn, first, end));
  }

  const int64_t chunks_, shares_;
  const ChunkOrder order_;
  std::atomic<bool> allDrawn_ = false;
  std::array<Next, kMost> next_;
};

}  // namespace normc::runtime
