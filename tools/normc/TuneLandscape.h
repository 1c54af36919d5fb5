// The schedules that a task of `tune` or `tune export` is about.
#pragma once

#include "autotune/candidates/Hardware.h"
#include "autotune/search/Landscape.h"
#include "tools/normc/TuneTasks.h"

namespace normc::cli {

/// Says whether an illegal schedule of the command line is an error or a candidate that is left out later.
enum class Illegal { Refused, Kept };

/// Returns all legal schedules of a task, or with --schedule the default and the schedules of the command
/// line. Throws Failure if there are none, or if one of these is unknown or, where that is refused, illegal.
/// One that is kept fails when it is compiled.
tune::Landscape landscapeOf(const TuneTask&, const tune::Hardware&, const TuneFlags&, Illegal);

}  // namespace normc::cli
