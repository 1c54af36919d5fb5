#include "autotune/measure/Copy.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace normc::measure {
namespace {

// Four vectors at a time: whole cache lines.
#if defined(__x86_64__)
#define NORMC_MEASURE_WIDE __attribute__((target("avx2")))
constexpr int kVector = 32;
#else
#define NORMC_MEASURE_WIDE
constexpr int kVector = 16;
#endif
using Vector = uint32_t __attribute__((vector_size(kVector)));
constexpr int64_t kStep = 4 * kVector;

/// The part of one thread, in whole steps.
struct Part {
  const char *first, *second;  ///< second is null where one input moves
  char* out;
  int64_t bytes;
};

NORMC_MEASURE_WIDE void readPass(const char* from, int64_t bytes, uint32_t& sink) {
  Vector sums[4] = {};
  for (int64_t at = 0; at < bytes; at += kStep)
    for (int i = 0; i < 4; ++i) sums[i] += *reinterpret_cast<const Vector*>(from + at + i * kVector);
  const Vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  sink += sum[0] + sum[1];
}

template <bool two, bool streaming>
NORMC_MEASURE_WIDE void writePass(const Part& part) {
  for (int64_t at = 0; at < part.bytes; at += kStep)
    for (int i = 0; i < 4; ++i) {
      const int64_t place = at + i * kVector;
      Vector value = *reinterpret_cast<const Vector*>(part.first + place);
      if constexpr (two) value += *reinterpret_cast<const Vector*>(part.second + place);
      auto* out = reinterpret_cast<Vector*>(part.out + place);
      if constexpr (streaming)
        __builtin_nontemporal_store(value, out);
      else
        *out = value;
    }
}

class Copy : public Contestant {
 public:
  Copy(std::vector<const void*> inputs, void* output, int64_t bytes, Traffic traffic, Stores stores,
       int threads)
      : inputs_(std::move(inputs)),
        output_(output),
        bytes_(bytes / kStep * kStep),
        stores_(stores),
        threads_(threads),
        extraReads_(traffic.reads - int(inputs_.size())) {
    assert(extraReads_ >= 0 && traffic.writes == 1);
  }

  double run(int64_t calls) override {
    return timed(calls, [this] {
      const auto one = [this](int part) { move(part); };
      if (threads_ == 1) return one(0);
      oneapi::tbb::parallel_for(0, threads_, one, oneapi::tbb::static_partitioner());
    });
  }

 private:
  void move(int index) const {
    const int64_t share = (bytes_ / kStep + threads_ - 1) / threads_ * kStep;
    const int64_t begin = std::min(index * share, bytes_), end = std::min(begin + share, bytes_);
    const auto at = [begin](const void* tensor) { return static_cast<const char*>(tensor) + begin; };
    uint32_t sink = 0;
    for (int i = 0; i < extraReads_; ++i) readPass(at(inputs_[i % inputs_.size()]), end - begin, sink);
    asm volatile("" ::"r"(sink));  // the reads count, whatever their sum
    const bool two = inputs_.size() == 2, streaming = stores_ == Stores::Streaming;
    const Part part = {at(inputs_[0]), two ? at(inputs_[1]) : nullptr, static_cast<char*>(output_) + begin,
                       end - begin};
    if (two)
      streaming ? writePass<true, true>(part) : writePass<true, false>(part);
    else
      streaming ? writePass<false, true>(part) : writePass<false, false>(part);
#if defined(__x86_64__)
    if (streaming) __builtin_ia32_sfence();
#endif
  }

  std::vector<const void*> inputs_;
  void* output_;
  int64_t bytes_;
  Stores stores_;
  int threads_;
  int extraReads_;
};

class Reader : public Contestant {
 public:
  Reader(const void* input, int64_t bytes, int threads)
      : input_(static_cast<const char*>(input)), bytes_(bytes / kStep * kStep), threads_(threads) {}

  double run(int64_t calls) override {
    return timed(calls, [this] {
      const auto one = [this](int part) {
        const int64_t share = (bytes_ / kStep + threads_ - 1) / threads_ * kStep;
        const int64_t begin = std::min(part * share, bytes_), end = std::min(begin + share, bytes_);
        uint32_t sink = 0;
        readPass(input_ + begin, end - begin, sink);
        asm volatile("" ::"r"(sink));
      };
      if (threads_ == 1) return one(0);
      oneapi::tbb::parallel_for(0, threads_, one, oneapi::tbb::static_partitioner());
    });
  }

 private:
  const char* input_;
  int64_t bytes_;
  int threads_;
};

}  // namespace

std::unique_ptr<Contestant> makeReader(const void* input, int64_t bytes, int threads) {
  return std::make_unique<Reader>(input, bytes, threads);
}

std::unique_ptr<Contestant> makeCopy(const std::vector<const void*>& inputs, void* output, int64_t bytes,
                                     Traffic traffic, Stores stores, int threads) {
  return std::make_unique<Copy>(inputs, output, bytes, traffic, stores, threads);
}

}  // namespace normc::measure
