// Tuning in two places: candidates are compiled here, and measured where the device is.
#pragma once

#include <string>
#include <vector>

#include "tools/normc/ExitCode.h"
#include "tools/normc/Output.h"
#include "tools/normc/TuneTasks.h"

namespace normc::cli {

/// `tune export NORM... -o FOLDER`: inputs begin with the word `export`; likewise below.
ExitCode exportBundle(const TuneFlags&, Output&);
/// `tune run-bundle FOLDER`: what normc-bundle does.
ExitCode runBundleHere(const TuneFlags&, Output&);
/// `tune import FILE... --records DB`: a file, or a bundle's folder with results in it.
ExitCode importResults(const TuneFlags&, Output&);

/// A Failure where one of the norms to tune is a bundle, for which there is `run-bundle`.
void refuseBundles(const std::vector<std::string>& inputs);

}  // namespace normc::cli
