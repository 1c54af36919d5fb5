// Checks that the memory a call writes is not memory that it uses otherwise.
#pragma once

#include <array>
#include <string_view>

#include "runtime/plan/Tensors.h"

namespace normc::runtime {

/// The memory of one argument.
struct Region {
  std::string_view name;
  uintptr_t begin, end;
  bool written;
  const View* view;  ///< of x, y, dy, dx, which may interleave like slices of one array; null for others
  int mayBe;         ///< the region that this one may be exactly (x for y, dy for dx), by index; or -1
};

/// The memory of a call, with room for every argument.
struct Regions {
  std::array<Region, kTensorCount + 4> items;  // not initialised: a call has this on its stack
  int count = 0;

  int add(const Region& region) {
    items[count] = region;
    return count++;
  }

  /// Fails on any overlap in which one side is written, except the exact ones that are allowed.
  normc_status check() const;
};

}  // namespace normc::runtime
