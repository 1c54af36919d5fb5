// The sizes of one call, and shapes that depend on them.
//
// Sums and products saturate at kHuge instead of wrapping; the runtime refuses a call with such a size.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include "runtime/abi/kernel.h"

namespace normc::package {

inline constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

/// Returns the product of non-negative factors; kHuge on overflow.
inline int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kHuge : product;
}
inline int64_t add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? kHuge : sum;
}
/// Returns the least common multiple of positive numbers; kHuge on overflow, which is no multiple of them.
inline int64_t commonMultiple(std::initializer_list<int64_t> numbers) {
  int64_t multiple = 1;
  for (const int64_t number : numbers) {
    if (multiple == kHuge) break;
    multiple = multiply(multiple / std::gcd(multiple, number), number);
  }
  return multiple;
}
/// Returns the next multiple of `to`, a power of two; kHuge on overflow.
inline int64_t roundUp(int64_t value, int64_t to) {
  return value > kHuge - to ? kHuge : (value + to - 1) & -to;
}

/// The alignment, in bytes, of every block of memory that the runtime lays out.
inline constexpr int64_t kAlignment = 64;

struct Sizes {
  int64_t segments = 1, rows = 0, features = 0;
  int64_t totalRows() const { return multiply(segments, rows); }
};

/// A range of row numbers; both ends are included.
struct Range {
  int64_t least = 0, most = kHuge;
  bool has(int64_t n) const { return n >= least && n <= most; }
  int64_t width() const { return most - least; }
  bool operator==(const Range&) const = default;
};

/// One factor of a shape in the manifest.
struct Factor {
  enum Kind : uint8_t { Fixed, Segments, Rows, Features, Chunks } kind = Fixed;
  int64_t value = 1;  ///< Fixed: the number. Chunks: the phase.

  /// Returns the value of the factor. `cuts` is used only for Chunks.
  int64_t of(const Sizes& sizes, const normc_cut* cuts) const {
    switch (kind) {
      case Fixed:
        return value;
      case Segments:
        return sizes.segments;
      case Rows:
        return sizes.rows;
      case Features:
        return sizes.features;
      case Chunks:
        return cuts[value].chunks;
    }
    return 0;
  }
  bool operator==(const Factor&) const = default;
};
/// Returns the word of a kind in manifests and messages; a phase stands behind that of Chunks.
constexpr std::string_view name(Factor::Kind kind) {
  constexpr std::string_view kNames[] = {"", "segments", "rows", "features", "chunks"};
  return kNames[kind];
}
inline constexpr Factor kSegments{Factor::Segments, 0}, kRows{Factor::Rows, 0},
    kFeatures{Factor::Features, 0};
/// Returns the number of chunks of a phase.
constexpr Factor chunksOf(int64_t phase) { return {Factor::Chunks, phase}; }

using Shape = std::vector<Factor>;

inline int64_t elements(const Shape& shape, const Sizes& sizes, const normc_cut* cuts = nullptr) {
  int64_t product = 1;
  for (const Factor& factor : shape) product = multiply(product, factor.of(sizes, cuts));
  return product;
}

}  // namespace normc::package
