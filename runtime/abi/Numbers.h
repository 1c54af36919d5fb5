// The numbers that a kernel takes as scalars: which values are legal, and which of them belong to a schedule.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>

namespace normc {

/// The values that keep the rules of the language, for a caller that replaces a default.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();  ///< this or more
  double above = -std::numeric_limits<double>::infinity();  ///< more than this
  double below = std::numeric_limits<double>::infinity();   ///< less than this
  bool whole = false;
};

/// Sizes of a tensor in bytes that a schedule decides by, not numbers of a norm. They are scalars at the
/// boundary of a kernel all the same (runtime/abi/kernel.h), behind those of the norm. A kernel that has a
/// mode for large calls has both: a call whose x has `kLargeNumber` or more uses that mode, and outputs of
/// `kStreamNumber` or more are written by non-temporal stores there.
inline constexpr std::string_view kLargeNumber = "large_bytes", kStreamNumber = "stream_bytes";
inline constexpr auto kThresholds = {kLargeNumber, kStreamNumber};

/// A threshold that no tensor reaches.
inline constexpr double kNeverBytes = double(int64_t{1} << 62);

}  // namespace normc
