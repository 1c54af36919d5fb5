// Decides which of several records is valid: the newest, and of choices the newest that no later record
// rejects. The result depends on the set of records, not on their order.
#pragma once

#include <string>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// True if `a` has priority over `b`: it has a later stamp, or was written later in the same session. Records
/// without stamps are the oldest, and their order is unknown: among them a choice with the better interval
/// has priority, and a rejection.
bool newer(const Record& a, const Record& b);

/// True if both are of the same task, measured on the same device with the same toolchain.
bool sameCircumstances(const Record& a, const Record& b);

/// Returns why a choice must not be used, by records that are later than it: `was slower than the default
/// when it was measured again`. Empty if the choice is valid.
std::string reasonRejected(const Record& choice, const std::vector<Record>& all);

/// True if a newer valid choice of the same circumstances exists, which is used instead.
bool isSuperseded(const Record& choice, const std::vector<Record>& all);

}  // namespace normc::tune
