// Memory that a call writes must not be memory that it uses otherwise.
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
  const View* view;  ///< of X-sized tensors, which may interleave as slices of one array do; null for others
  int mayBe;         ///< the region that this one may be exactly (TensorInfo::mayBe), by index; or -1
};

/// The memory of a call: room for all tensors, state_in, state_out, saved and workspace.
struct Regions {
  std::array<Region, kTensorCount + 4> items;  // not initialised: a call has this on its stack
  int count = 0;

  int add(const Region& region) {
    items[count] = region;
    return count++;
  }

  /// Refuses any overlap in which one side is written, but for the exact ones allowed.
  normc_status check() const;
};

}  // namespace normc::runtime
