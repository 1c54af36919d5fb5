// Which elements of many are asked for a value near the mean of all.
#pragma once

#include <cstdint>

namespace normc::codegen {

/// What shares are counted in, and how irregular they are.
constexpr int64_t kOffsetDenominator = 1 << 16, kOffsetJitter = 2654;

/// Of n things in `parts` equal shares, a power of two, the one that is asked for the i-th is n * offsetNumerator / kOffsetDenominator,
/// rounded down: in the middle half of its share, if n is no less than `parts` one of its own. No two lie as far apart as
/// another two, so what returns after some number of things, like the first token of each sequence or the border of
/// each line of an image, is met by chance; and memory that is read at equal distances would be fetched at the next one.
constexpr int64_t offsetNumerator(int64_t i, int64_t parts) {
  const int64_t share = kOffsetDenominator / parts;
  return i * share + share / 4 + i * i * kOffsetJitter % (share / 2);
}

}  // namespace normc::codegen
