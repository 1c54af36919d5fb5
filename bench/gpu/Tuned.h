// The choices of tuning: a bundle's packages, by the records of its measurement.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "autotune/records/Record.h"
#include "bench/gpu/Kernels.h"
#include "bench/gpu/Shapes.h"

namespace normc::gpu {

/// The decision for one shape on this device.
struct Choice {
  bool won = false;     ///< false: the default stays
  std::string package;  ///< of the kernel that won, alone
  std::string schedule;
};

class Tuned {
 public:
  /// Nothing is tuned.
  Tuned() = default;
  /// `folder`: the bundle; `records`: the file of its results, which need not be there. Throws what readPlan
  /// does.
  Tuned(const std::string& folder, const std::string& records, const std::string& driver, int device);

  std::optional<Choice> find(const Shape&) const;
  /// Returns the decision for the shape of that text; empty if there is none.
  std::string scheduleOf(const std::string& shape) const;

 private:
  std::map<std::string, Choice> choices_;  ///< by the text of the shape
};

}  // namespace normc::gpu
