// Which of several records counts: the newest, and of choices the newest that nothing found later speaks
// against. It depends on the records alone, not on their order.
#pragma once

#include <string>
#include <vector>

#include "autotune/records/Record.h"

namespace normc::tune {

/// Whether `a` counts before `b`: it is of a later stamp, or was written later in the same session. Of
/// records without stamps, which are the oldest, nobody knows: a choice with the better interval counts, and
/// a rejection.
bool newer(const Record& a, const Record& b);

/// Whether two are of the same task, measured on the same device with the same toolchain.
bool sameCircumstances(const Record& a, const Record& b);

/// What was found of a choice since it was made, by which it must not be used: `was slower than the default
/// when it was measured again`. Empty where nothing was: then it stands.
std::string reasonRejected(const Record& choice, const std::vector<Record>& all);

/// Whether a newer choice of the same circumstances stands, so that nobody uses this one.
bool isSuperseded(const Record& choice, const std::vector<Record>& all);

}  // namespace normc::tune
