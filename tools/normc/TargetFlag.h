// Reads --target and --device: the hardware that code is made for.
#pragma once

#include <string>

#include "autotune/candidates/Hardware.h"
#include "tools/normc/Place.h"

namespace normc::cli {

/// Returns what tune::hardwareFor does; an unknown target is a Failure.
tune::Hardware hardwareFor(const std::string& target);
/// Returns the device of --device: with `host` as the target, a CUDA device has the architecture that it is.
tune::Hardware hardwareFor(const std::string& target, const Place&);

/// The word after --target: one of targetNames(), with or without a core behind a colon, or any
/// architecture of a GPU. A Failure that suggests the nearest name otherwise; a core is judged by findTarget.
std::string targetWord(const std::string& target);
/// The same for a verb that takes one: a list is a Failure.
std::string oneTarget(const std::string& target, const std::string& verb);

}  // namespace normc::cli
