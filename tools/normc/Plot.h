// Records as pictures, drawn by gnuplot.
#pragma once

#include <string>

#include "autotune/records/Database.h"
#include "tools/normc/ExitCode.h"
#include "tools/normc/Files.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// Three pictures, each as SVG and PNG, in a folder: `landscape` (what each candidate took, of the default),
/// `features` (speed over feature counts, default and chosen), `roofline` (speed over the bytes of x).
/// Throws where gnuplot is not there, with how to get it.
ExitCode plotRecords(const tune::Database&, const std::string& folder, const std::vector<NamedFile>& read,
                     Output&);

/// The script that draws one of them; data stand in it.
std::string plotScript(const tune::Database&, const std::string& picture);

}  // namespace normc::cli
