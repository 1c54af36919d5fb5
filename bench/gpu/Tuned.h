// The choices of tuning: a bundle's packages, by the records of its measurement.
#pragma once

#include <map>
#include <string>

namespace normc::gpu {

/// The decision for one shape on this device.
struct Choice {
  bool won = false;     ///< false: the default stays
  std::string package;  ///< of the kernel that won, alone
  std::string schedule;
};

/// By the text of the shape.
using Choices = std::map<std::string, Choice>;

/// `folder`: the bundle; `records`: the file of its results, which need not be there. Throws what readPlan
/// does.
Choices choicesOf(const std::string& folder, const std::string& records, const std::string& driver,
                  int device);

}  // namespace normc::gpu
