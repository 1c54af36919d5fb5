// The numbers that a kernel takes as scalars: their legal values, and which belong to a schedule.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace normc {

/// The legal range of a number, for a caller that replaces a default.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();  ///< this or more
  double above = -std::numeric_limits<double>::infinity();  ///< more than this
  double below = std::numeric_limits<double>::infinity();   ///< less than this
  bool whole = false;
};

/// Rule C26: the largest whole number that a number may be, 2^53. Up to it every one is a double.
inline constexpr double kLargestWhole = 0x1p53;

/// Tensor sizes in bytes that a schedule compares with; they are not numbers of a norm. At the boundary of a
/// kernel they are scalars after those of the norm (runtime/abi/kernel.h). A kernel with a variant for large
/// calls has both: a call uses the variant if its x has at least `kLargeNumber` bytes, and there outputs of
/// at least `kStreamNumber` bytes are written by non-temporal stores.
inline constexpr std::string_view kLargeNumber = "large_bytes", kStreamNumber = "stream_bytes";
inline constexpr auto kThresholds = {kLargeNumber, kStreamNumber};

/// Their defaults: calls whose x has at least `kLargeBytes` are large, and outputs of at least `kStreamBytes`
/// pass the caches.
inline constexpr double kLargeBytes = 8 << 20, kStreamBytes = 32 << 20;

/// A threshold that no tensor reaches.
inline constexpr double kNeverBytes = double(int64_t{1} << 62);

}  // namespace normc
