// Properties of the sums of kernels: generators guarantee them, and the tolerance relies on them.
#pragma once

#include <cstdint>

namespace normc {

/// The longest chain of additions at one level of a sum: after that many additions the result goes to the
/// next level, and an accumulator begins at zero. dsl/Tolerance.h derives the error bound. Only the last
/// level of a sum whose length the compiler does not know may be longer.
inline constexpr int64_t kLongestChain = 16;

}  // namespace normc
