// Measures the choice of a record again, on the machine that it was made for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/candidates/Hardware.h"
#include "autotune/measure/Stats.h"
#include "autotune/records/Journal.h"

namespace normc::tune {

/// Returns the problem of a task, with the norm of the task's hash among `norms` and the built-in norms. It
/// is an error if there is none.
Result<Problem> problemOf(const Task&, const std::vector<std::shared_ptr<const Spec>>& norms);

/// Returns why a choice cannot be measured on this hardware; empty if it can.
std::string whyNotMeasured(const Record& choice, const Result<Problem>&, const Hardware&);

/// The result of measuring a choice again; without a verdict it could not be measured.
struct Remeasured {
  measure::Ratio ratio{1, 1, 1};
  std::optional<Verdict> verdict;
  std::string reason;
};

struct Remeasuring {
  Journal& journal;  ///< receives the result
  std::string session;
  int64_t stamp;
  std::string folder;    ///< for packages
  double quietPatience;  ///< seconds in total to wait for a core without other load
  std::function<bool()> stop;
};

/// Judges a choice and races it against the default. Returns nothing if it was stopped. Throws
/// std::runtime_error if there is no default, or no worker.
std::optional<Remeasured> measureAgain(const Record& choice, const Problem&, const Hardware&,
                                       const Remeasuring&);

}  // namespace normc::tune
