// Stratified sampling: the positions of the elements that a shift estimate is taken from.
#pragma once

#include <cstdint>

namespace normc {

/// The denominator of offsets, a power of two, and the multiplier that makes their distances irregular.
constexpr int64_t kOffsetDenominator = 1 << 16, kOffsetJitter = 2654;

/// Returns the numerator of the offset of sample i: of n elements in `parts` equal strata, a power of two,
/// the sample is n * offsetNumerator / kOffsetDenominator, rounded down. It is in the middle half of its
/// stratum, and strata have distinct samples if n is at least `parts`. No two distances are equal. So data
/// that repeat, like the first token of each sequence or the border of each image line, are sampled by chance
/// only, and the processor does not prefetch at a constant distance.
constexpr int64_t offsetNumerator(int64_t i, int64_t parts) {
  const int64_t share = kOffsetDenominator / parts;
  return i * share + share / 4 + i * i * kOffsetJitter % (share / 2);
}

}  // namespace normc
