// Checks that the memory a call writes is not memory that it uses otherwise.
#pragma once

#include <array>
#include <memory>

#include "runtime/plan/Tensors.h"

namespace normc::runtime {

/// The memory of one argument.
struct Region {
  ArgumentName name;
  uintptr_t begin, end;
  bool written;
  const View* view = nullptr;  ///< of an X-sized tensor; these may interleave like slices of one array
  int mayBe = kNone;           ///< the region that this one may be exactly (x for y, dy for dx), by index

  static constexpr int kNone = -1;
  static Region of(const ArgumentName& name, const void* memory, int64_t bytes, bool written) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    return {name, begin, begin + bytes, written};
  }
};

/// The memory of a call, with room for every argument.
struct Regions {
  union {  // not initialised: a call has this on its stack
    std::array<Region, kTensorCount + 3 * kMaxFields + 2> items;
  };
  int count = 0;

  Regions() {}
  int add(const Region& region) {
    std::construct_at(&items[count], region);
    return count++;
  }

  /// Fails on any overlap in which one side is written, except the exact ones that are allowed.
  normc_status check() const;
};

}  // namespace normc::runtime
