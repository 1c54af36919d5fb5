// How kernels add up: what their generators promise, and the tolerance counts on.
#pragma once

#include <cstdint>

namespace normc {

/// The longest chain of additions at one level of a sum: after so many the result goes to the next level, and
/// an accumulator begins at zero. dsl/Tolerance.h says what follows for the error. Only the last level of a
/// sum whose length is not known to the compiler may be longer.
inline constexpr int64_t kLongestChain = 16;

}  // namespace normc
