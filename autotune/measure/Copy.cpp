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

/// The most tensors that a pass reads, or writes; a kernel has no more.
constexpr size_t kMostTensors = 16;

/// A part of the bytes; its length is a multiple of a step.
struct Part {
  const char* in[kMostTensors];
  char* out[kMostTensors];
  size_t inputs, outputs;
  int64_t bytes;
};

NORMC_MEASURE_WIDE void readPass(const char* from, int64_t bytes, uint32_t& sink) {
  Vector sums[4] = {};
  for (int64_t at = 0; at < bytes; at += kStep)
    for (int i = 0; i < 4; ++i) sums[i] += *reinterpret_cast<const Vector*>(from + at + i * kVector);
  const Vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  sink += sum[0] + sum[1];
}

/// Writes the sum of the inputs to each output. `kInputs`, `kOutputs`: their numbers; 0: those of the part.
template <size_t kInputs, size_t kOutputs, bool streaming>
NORMC_MEASURE_WIDE void writePass(const Part& part) {
  const size_t inputs = kInputs ? kInputs : part.inputs, outputs = kOutputs ? kOutputs : part.outputs;
  for (int64_t at = 0; at < part.bytes; at += kStep)
    for (int i = 0; i < 4; ++i) {
      const int64_t place = at + i * kVector;
      Vector value = *reinterpret_cast<const Vector*>(part.in[0] + place);
      for (size_t k = 1; k < inputs; ++k) value += *reinterpret_cast<const Vector*>(part.in[k] + place);
      for (size_t k = 0; k < outputs; ++k) {
        auto* out = reinterpret_cast<Vector*>(part.out[k] + place);
        if constexpr (streaming)
          stream(out, value);
        else
          *out = value;
      }
    }
}

template <bool streaming>
void writeAll(const Part& part) {
  if (part.outputs == 1 && part.inputs == 1) return writePass<1, 1, streaming>(part);
  if (part.outputs == 1 && part.inputs == 2) return writePass<2, 1, streaming>(part);
  if (part.outputs == 2 && part.inputs == 2) return writePass<2, 2, streaming>(part);
  writePass<0, 0, streaming>(part);
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
  Copy(std::vector<const void*> inputs, std::vector<void*> outputs, int64_t bytes, Traffic traffic,
       Stores stores, int threads)
      : OnThreads(bytes, threads), inputs_(std::move(inputs)), outputs_(std::move(outputs)), stores_(stores) {
    assert(!inputs_.empty() && !outputs_.empty() && traffic.reads > 0 && traffic.writes > 0);
    inputs_.resize(std::min({inputs_.size(), size_t(traffic.reads), kMostTensors}));
    extraReads_ = traffic.reads - int(inputs_.size());
    for (size_t i = 0; outputs_.size() < size_t(traffic.writes); ++i) outputs_.push_back(outputs_[i]);
    outputs_.resize(std::min(size_t(traffic.writes), kMostTensors));
  }

 private:
  void pass(int64_t begin, int64_t length) const override {
    Part part;
    part.inputs = inputs_.size();
    part.outputs = outputs_.size();
    part.bytes = length;
    for (size_t i = 0; i < part.inputs; ++i) part.in[i] = static_cast<const char*>(inputs_[i]) + begin;
    for (size_t i = 0; i < part.outputs; ++i) part.out[i] = static_cast<char*>(outputs_[i]) + begin;
    uint32_t sink = 0;
    for (size_t i = 0; i < size_t(extraReads_); ++i) readPass(part.in[i % part.inputs], length, sink);
    asm volatile("" ::"r"(sink));  // keeps the reads, whose sum is not used
    const bool streaming = stores_ == Stores::Streaming;
    streaming ? writeAll<true>(part) : writeAll<false>(part);
#if defined(__x86_64__)
    if (streaming) __builtin_ia32_sfence();
#endif
  }

  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
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

CopyTensors::CopyTensors(size_t inputs, size_t outputs, int64_t bytes) {
  while (this->inputs.size() < inputs) this->inputs.push_back(memory.emplace_back(bytes).data());
  while (this->outputs.size() < outputs) this->outputs.push_back(memory.emplace_back(bytes).data());
}

std::unique_ptr<Contestant> makeReader(const void* input, int64_t bytes, int threads) {
  return std::make_unique<Reader>(input, bytes, threads);
}

std::unique_ptr<Contestant> makeCopy(const std::vector<const void*>& inputs,
                                     const std::vector<void*>& outputs, int64_t bytes, Traffic traffic,
                                     Stores stores, int threads) {
  return std::make_unique<Copy>(inputs, outputs, bytes, traffic, stores, threads);
}

}  // namespace normc::measure
