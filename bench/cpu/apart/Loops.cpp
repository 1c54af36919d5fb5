// The loops, for the instruction set of this compilation: NORMC_LOOPS_ISA names its namespace.
#include "bench/cpu/apart/Loops.h"

#include <cstddef>

#include "bench/cpu/apart/Ops.h"

#if defined(__x86_64__) && !__has_builtin(__builtin_nontemporal_store)
#include <immintrin.h>
#endif

namespace normc::bench::apart {
namespace {

using Halves = uint16_t __attribute__((vector_size(2 * kLanes)));

/// Elements in memory: f32, and bf16 as the upper half of it.
struct F32 {
  using Vector = Floats;
  static constexpr int kBytes = 4;
  static Floats widen(Vector v) { return v; }
  static Vector narrow(Floats v) { return v; }
};
struct BF16 {
  using Vector = Halves;
  static constexpr int kBytes = 2;
  static Floats widen(Vector v) { return (Floats)(__builtin_convertvector(v, Ints) << 16); }
  static Vector narrow(Floats v) {  // to the nearest, ties to even; no NaN comes here
    using Bits = uint32_t __attribute__((vector_size(4 * kLanes)));
    const Bits bits = (Bits)v;
    return __builtin_convertvector((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, Vector);
  }
};

template <class T>
const void* at(const void* base, int64_t element) {
  return static_cast<const char*>(base) + element * T::kBytes;
}
template <class T>
void* at(void* base, int64_t element) {
  return static_cast<char*>(base) + element * T::kBytes;
}

/// Loads `lanes` elements; the others are 0.
template <class T>
inline Floats load(const void* from, int lanes) {
  typename T::Vector v = {};
  if (lanes == kLanes)
    __builtin_memcpy(&v, from, sizeof v);
  else
    __builtin_memcpy(&v, from, std::size_t(lanes) * T::kBytes);
  return T::widen(v);
}

template <class Vector>
inline void storePast(void* to, Vector v) {
#if __has_builtin(__builtin_nontemporal_store)
  __builtin_nontemporal_store(v, static_cast<Vector*>(to));
#elif defined(__AVX512F__)
  if constexpr (sizeof v == 64) return _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)v);
  if constexpr (sizeof v == 32) return _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)v);
#elif defined(__AVX__)
  if constexpr (sizeof v == 32) return _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)v);
  if constexpr (sizeof v == 16) return _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)v);
#else
  __builtin_memcpy(to, &v, sizeof v);
#endif
}

template <class T, bool streaming>
inline void store(void* to, Floats value, int lanes) {
  const typename T::Vector v = T::narrow(value);
  if (lanes != kLanes)
    __builtin_memcpy(to, &v, std::size_t(lanes) * T::kBytes);
  else if constexpr (streaming)
    storePast(to, v);
  else
    __builtin_memcpy(to, &v, sizeof v);
}

/// One vector of features of `kRows` rows: vectors and sums are loaded once for all of them.
template <Op op, class T, bool streaming, int kRows>
inline void step(const Loop& loop, int64_t row, const void* const vectors[2], float* const sums[2],
                 int64_t feature, int lanes) {
  constexpr Counts kCounts = countsOf(op);
  Place p;
  p.offset = loop.offset;
  for (int k = 0; k < 3; ++k) p.in[k] = Floats{};
  for (int k = 0; k < 2; ++k) p.vectors[k] = p.sums[k] = Floats{};
  for (int k = 0; k < kCounts.vectors; ++k) p.vectors[k] = load<T>(at<T>(vectors[k], feature), lanes);
  for (int k = 0; k < kCounts.sums; ++k) p.sums[k] = load<F32>(sums[k] + feature, lanes);
  for (int r = 0; r < kRows; ++r) {
    const int64_t element = (row + r) * loop.features + feature;
    for (int k = 0; k < kCounts.in; ++k) p.in[k] = load<T>(at<T>(loop.in[k], element), lanes);
    apply<op>(p);
    for (int k = 0; k < kCounts.out; ++k) store<T, streaming>(at<T>(loop.out[k], element), p.out[k], lanes);
  }
  for (int k = 0; k < kCounts.sums; ++k) store<F32, false>(sums[k] + feature, p.sums[k], lanes);
}

template <Op op, class T, bool streaming, int kRows>
void rowsAtOnce(const Loop& loop, int64_t row, float* const sums[2]) {
  const int64_t segment = row / loop.rowsOfSegment, whole = loop.features / kLanes * kLanes;
  const void* vectors[2] = {};
  for (int k = 0; k < countsOf(op).vectors; ++k) vectors[k] = at<T>(loop.vectors[k], segment * loop.features);
  int64_t feature = 0;
#pragma GCC unroll 4
  for (; feature < whole; feature += kLanes)
    step<op, T, streaming, kRows>(loop, row, vectors, sums, feature, kLanes);
  if (feature < loop.features)
    step<op, T, false, kRows>(loop, row, vectors, sums, feature, int(loop.features - feature));
}

template <Op op, class T, bool streaming>
void runRowsOf(const Loop& loop, int64_t row, int64_t rows, float* const sums[2]) {
  const int64_t end = row + rows;
  if constexpr (countsOf(op).sums > 0) {
    // Rows at a multiple of a page share the sets of the first-level cache: of four, lines would be lost.
    if (loop.features * T::kBytes % 4096 != 0)
      for (; row + 4 <= end; row += 4) rowsAtOnce<op, T, streaming, 4>(loop, row, sums);
    for (; row + 2 <= end; row += 2) rowsAtOnce<op, T, streaming, 2>(loop, row, sums);
  }
  for (; row < end; ++row) rowsAtOnce<op, T, streaming, 1>(loop, row, sums);
#if defined(__x86_64__)
  if (streaming) __builtin_ia32_sfence();
#endif
}

template <Op op>
void runOp(const Loop& loop, int64_t row, int64_t rows, float* const sums[2]) {
  if (loop.bf16)
    loop.streaming ? runRowsOf<op, BF16, true>(loop, row, rows, sums)
                   : runRowsOf<op, BF16, false>(loop, row, rows, sums);
  else
    loop.streaming ? runRowsOf<op, F32, true>(loop, row, rows, sums)
                   : runRowsOf<op, F32, false>(loop, row, rows, sums);
}

}  // namespace

namespace NORMC_LOOPS_ISA {

void runRows(const Loop& loop, int64_t row, int64_t rows, float* const sums[2]) {
  switch (loop.op) {
#define NORMC_LOOP(op) \
  case Op::op:         \
    return runOp<Op::op>(loop, row, rows, sums)
    NORMC_LOOP(Add);
    NORMC_LOOP(Silu);
    NORMC_LOOP(SiluGrad);
    NORMC_LOOP(Relu);
    NORMC_LOOP(ReluGrad);
    NORMC_LOOP(AddRelu);
    NORMC_LOOP(GateSilu);
    NORMC_LOOP(GateSiluGrad);
    NORMC_LOOP(GateSigmoid);
    NORMC_LOOP(GateSigmoidGrad);
    NORMC_LOOP(GateAdd);
    NORMC_LOOP(GateAddGrad);
    NORMC_LOOP(Modulate);
    NORMC_LOOP(ModulateGrad);
#undef NORMC_LOOP
  }
}

}  // namespace NORMC_LOOPS_ISA
}  // namespace normc::bench::apart
