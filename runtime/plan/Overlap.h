// Memory that a call writes must not be memory that it uses otherwise.
#pragma once

#include <array>
#include <string_view>

#include "runtime/plan/Tensors.h"

namespace normc::runtime {

/// The memory of one argument.
struct Region {
  std::string_view name;
  uintptr_t begin = 0, end = 0;
  bool written = false;
  const View* view = nullptr;  ///< of x, y, dy, dx: they may interleave, as slices of one array do
  int mayBe = -1;              ///< the region that this one may be exactly (x for y, dy for dx), by index
};

/// The memory of a call; enough room for every argument there is.
struct Regions {
  std::array<Region, 16> items;
  int count = 0;

  int add(const Region& region) {
    items[count] = region;
    return count++;
  }

  /// Refuses any overlap in which one side is written, but for the exact ones allowed.
  normc_status check() const;
};

}  // namespace normc::runtime
