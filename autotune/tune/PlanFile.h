// The file plan.json of a bundle (Bundle.h): its tasks, each with its candidates.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "autotune/search/Landscape.h"
#include "autotune/tune/MakeAhead.h"
#include "autotune/tune/Setting.h"

namespace normc::tune {

inline constexpr const char* kPlanFile = "plan.json";

/// One task of a bundle, and the landscape of its candidates.
struct Shipped {
  Setting setting;                   ///< the device holds only what the code was compiled for
  std::vector<Point> points;         ///< the default first
  std::vector<BuiltCandidate> made;  ///< one for each point; paths are within the folder
};

/// Returns the text of plan.json.
std::string planText(const std::vector<Shipped>&);

/// The reason why a bundle cannot be used.
class BundleError : public std::runtime_error {
 public:
  enum Kind { Missing, Damaged, Foreign };  ///< foreign: written by another version of normc
  BundleError(Kind kind, const std::string& text) : std::runtime_error(text), kind(kind) {}
  Kind kind;
};

/// Returns the tasks of plan.json. A BundleError has the file and the fault.
std::vector<Shipped> readPlan(const std::string& folder);

}  // namespace normc::tune
