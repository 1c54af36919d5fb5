#include "autotune/measure/Copy.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "runtime/threads/Pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace normc::measure {
namespace {

// A step is four vectors, which are whole cache lines.
#if defined(__x86_64__)
#define NORMC_MEASURE_WIDE __attribute__((target("avx2")))
constexpr int kVector = 32;
#else
#define NORMC_MEASURE_WIDE
constexpr int kVector = 16;
#endif
using Vector = uint32_t __attribute__((vector_size(kVector)));
constexpr int64_t kStep = 4 * kVector;

/// A non-temporal store; an ordinary one if the compiler or the processor has none.
NORMC_MEASURE_WIDE inline void stream(Vector* out, const Vector& value) {
#if __has_builtin(__builtin_nontemporal_store)
  __builtin_nontemporal_store(value, out);
#elif defined(__x86_64__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(out), reinterpret_cast<const __m256i&>(value));
#else
  *out = value;
#endif
}

/// A part of the bytes; its length is a multiple of a step.
struct Part {
  const char *first, *second;  ///< `second` is null if there is one input
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
        stream(out, value);
      else
        *out = value;
    }
}

/// Passes over bytes that are cut into parts, several for each thread, so that a thread that starts late
/// takes fewer.
class OnThreads : public Contestant {
 public:
  OnThreads(int64_t bytes, int threads)
      : bytes_(bytes / kStep * kStep),
        threads_(threads),
        parts_(threads == 1 ? 1 : threads * 16),
        pool_(threads - 1) {}

  double run(int64_t calls) override {
    const auto part = [](void* self, int64_t index) { static_cast<const OnThreads*>(self)->pass(index); };
    return timed(calls, [&] { pool_.run(parts_, threads_, part, this); });
  }

 protected:
  /// Processes `length` bytes from `begin` on.
  virtual void pass(int64_t begin, int64_t length) const = 0;

 private:
  void pass(int64_t index) const {
    const int64_t share = (bytes_ / kStep + parts_ - 1) / parts_ * kStep;
    const int64_t begin = std::min(index * share, bytes_);
    pass(begin, std::min(share, bytes_ - begin));
  }

  int64_t bytes_;
  int threads_;
  int64_t parts_;
  runtime::Pool pool_;
};

class Copy : public OnThreads {
 public:
  Copy(std::vector<const void*> inputs, void* output, int64_t bytes, Traffic traffic, Stores stores,
       int threads)
      : OnThreads(bytes, threads),
        inputs_(std::move(inputs)),
        output_(output),
        stores_(stores),
        extraReads_(traffic.reads - int(inputs_.size())) {
    assert(extraReads_ >= 0 && traffic.writes == 1);
  }

 private:
  void pass(int64_t begin, int64_t length) const override {
    const auto at = [begin](const void* tensor) { return static_cast<const char*>(tensor) + begin; };
    uint32_t sink = 0;
    for (int i = 0; i < extraReads_; ++i) readPass(at(inputs_[i % inputs_.size()]), length, sink);
    asm volatile("" ::"r"(sink));  // keeps the reads, whose sum is not used
    const bool two = inputs_.size() == 2, streaming = stores_ == Stores::Streaming;
    const Part part = {at(inputs_[0]), two ? at(inputs_[1]) : nullptr, static_cast<char*>(output_) + begin,
                       length};
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
  Stores stores_;
  int extraReads_;
};

class Reader : public OnThreads {
 public:
  Reader(const void* input, int64_t bytes, int threads)
      : OnThreads(bytes, threads), input_(static_cast<const char*>(input)) {}

 private:
  void pass(int64_t begin, int64_t length) const override {
    uint32_t sink = 0;
    readPass(input_ + begin, length, sink);
    asm volatile("" ::"r"(sink));
  }

  const char* input_;
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
