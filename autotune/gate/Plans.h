// The plans through which one kernel is judged.
//
// Trials are small, so a kernel with a variant for large calls (docs/codegen.md) is judged through a plan
// that takes every call for a large one too. A plan has its numbers from the start, so there is a pair of
// plans for each set of numbers that trials have.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "autotune/gate/Trials.h"
#include "runtime/normc.hpp"

namespace normc::gate {

/// Returns the numbers that make a plan treat every call as too large for the caches; empty if its kernel has
/// no such variant.
std::vector<normc_number> numbersOfLargeCalls(const normc_plan*);

/// Owns the plans. Not thread-safe.
class Plans {
 public:
  /// Makes a plan of the kernel with these numbers in place of the defaults. May throw host::Error.
  using Make = std::function<host::Plan(const std::vector<normc_number>&)>;

  /// Makes the plans with the defaults; throws what `make` throws, then or when others are needed.
  explicit Plans(Make make);

  /// Returns the plan with all defaults.
  const host::Plan& plan() const { return byNumbers_.at({}).small; }
  /// Returns the plan with the defaults that takes every call for a large one; null if there is none.
  const host::Plan* large() const;
  /// Returns the plans through which a trial is judged; valid as long as this object.
  std::vector<const normc_plan*> of(const Trial&);

 private:
  struct Pair {
    host::Plan small;
    std::optional<host::Plan> large;
  };
  const Pair& pair(const Numbers&);

  Make make_;
  std::map<Numbers, Pair> byNumbers_;
};

}  // namespace normc::gate
